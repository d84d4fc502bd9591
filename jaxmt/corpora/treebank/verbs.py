"""The verbs of the synthetic corpus with what they take.

A row of the frames is: Chinese verb (`+` parts the words of a compound),
subjects, object, English, flags, places. The English of one Chinese verb
depends on the row, that is, on its subject and object: 打 is play, make, hit
or hold. `o` in an English wording is the object; a digit at the end of a word
says which word of a compound it translates; otherwise it translates them all.

Flags: s a state; i an instant (no progressive); a takes 把; e takes 被; k a
skill (会 is `can`); n the object is part of the phrase: no modifiers, no
relative clause; d a bare object is definite; g the object is a sort of thing
(not counted); w beyond anyone's will (no modals); a digit is the weight (1 if
there is none).
Subjects: h anyone, o an organisation, or a noun's tag. Places: tags of place
nouns where it happens, `*` anywhere, - nowhere.
"""

import dataclasses

from jaxmt.corpora.treebank.structure import running_totals

_FRAMES = """
看 h text read_o k4 study,home
看 h watch watch_o/see_o 3 home,cinema
看 h look look_at_o 1 *
看 h friend visit_o/see_o 2 -
看 patient,old doctor see_o 1 in
看+完 h text finish2_reading1_o/finish2_o adi2 -
看+到 h person see_o/notice_o i2 *
看+到 h animal see_o i1 out
看+懂 h writing understand_o is1 -
听+到 h message hear_o i1 -
听 h music listen_to_o 2 home,room
听 pupil,expert lecture attend_o/listen_to_o 1 study
听+懂 h lang understand_o si1 -
写 h writing write_o 3 study,room
写+完 h writing finish2_writing1_o/finish2_o adi2 -
写 writer,pupil story write_o 1 -
买 h goods buy_o/purchase_o 5 shop
买+到 h goods buy_o/get_o i1 shop
卖 boss,farmer goods sell_o 2 shop
卖+掉 h wheels sell_o aei1 -
吃 h fruit eat_o 2 home
吃 h dish eat_o/have_o 3 eat,home
吃 h meal have_o/eat_o n2 eat,home
吃 h medicine take_o 2 -
吃+完 h dish finish2_o/finish2_eating1_o adi1 -
喝 h drink drink_o/have_o 3 eat,home
喝+完 h cup finish2_o/finish2_drinking1_o adi1 -
做 h meal cook_o/make_o n2 kitchen
做 cook,kin dish cook_o/make_o k2 kitchen
做 h homework do_o nd2 home,study
做 boss,h business do_o n1 city
做 expert,pupil experiment do_o/conduct_o 1 lab
做 h decision make_o i1 -
做+完 h homework finish_o and2 -
玩 h game play_o n1 home
打 h ball play_o kn4 gym,out
踢 h kick play_o kn2 out
打 h call make_o n3 room,home
打 h person hit_o/beat_o e2 out
打 h hold hold_o n1 -
打 h taxi take_o n1 -
打+破 h break break_o aei3 kitchen
打+开 h opened open_o adi2 -
打+开 h door open_o adi2 -
打扫 h room clean_o d2 -
开 h car drive_o k3 -
开 boss,expert,official congress hold_o/have_o n2 room,city
开 h door open_o di1 -
开 h switch turn_on_o/turn_o_on/switch_on_o di2 -
开 h company run_o/open_o 2 city
开 doctor medicine prescribe_o n1 -
开 h joke make_o/tell_o n1 -
关+上 h door close_o/shut_o adi2 -
关+掉 h switch turn_off_o/turn_o_off/switch_off_o adi2 -
说 h lang speak_o kn3 -
讲 h story tell_o 2 room
教 teacher subject teach_o n2 org
学 h lang learn_o/study_o n3 org
学习 pupil,expert subject study_o n2 org,city
学+会 h lang learn_o ni1 -
研究 expert,teacher field study_o/do_research_on_o n2 org,city
研究 expert,official topic study_o/examine_o 2 -
问 h question ask_o i2 -
回答 h question answer_o d2 -
解决 h,o problem solve_o/resolve_o ed3 -
遇到 h,o problem encounter_o/run_into_o i2 -
遇到 h difficulty encounter_o/meet_with_o i1 -
遇到 h friend run_into_o/meet_o i2 out,shop
发现 h,expert mistake discover_o/find_o ei1 -
发现 expert problem discover_o/find_o ei1 -
讨论 h,o topic discuss_o/talk_about_o ed3 room
提出 h,o suggestion put_forward_o/make_o i2 -
提出 h question raise_o/ask_o i1 -
提出 expert,o plan propose_o/put_forward_o i1 -
接受 h,o suggestion accept_o di1 -
接受 h gift accept_o di1 -
拒绝 h,o suggestion reject_o/refuse_o edi1 -
支持 h,o plan support_o sd2 -
反对 h,o plan oppose_o/be_against_o sd2 -
反对 h policy oppose_o sd1 -
制定 o,official policy make_o/formulate_o e1 -
制定 o,boss plan draw_up_o/make_o e2 -
完成 h,o task complete_o/finish_o adi2 -
完成 h,o project complete_o di1 -
参加 h meeting attend_o 2 city
参加 h match take_part_in_o/participate_in_o 2 city
参加 pupil exam take_o 1 -
参加 h organized take_part_in_o/join_in_o 2 -
参加 h wedding attend_o/go_to_o 1 -
举行 o,official meeting hold_o i2 city,room
举行 o,h wedding hold_o i1 sleep,city
组织 o,teacher event organize_o 1 city
通过 pupil exam pass_o i2 -
通过 gov,official law pass_o/adopt_o di1 -
参观 h visit visit_o d3 -
离开 h venue leave_o di2 -
找 h lost look_for_o d2 *
找 h friend look_for_o 1 -
找 h position look_for_o 1 city
找+到 h lost find_o ai3 *
找+到 h way find_o i1 -
找+到 h position find_o i1 city
丢 h lost lose_o i2 *
拿+走 h thing take_away_o/take_o_away aei2 -
带 h thing bring_o/take_o 2 -
借 h borrow borrow_o 2 -
借+走 h borrow borrow_o aei2 -
还 h borrow return_o di1 -
收到 h gift receive_o/get_o i1 -
收到 h mailed receive_o/get_o i2 -
寄 h mailed send_o/mail_o i1 -
发 h mail send_o i2 room
发表 expert,writer opus publish_o i2 -
出版 press opus publish_o ei2 city
翻译 h opus translate_o 2 -
穿 h wear wear_o s2 -
戴 h head wear_o s2 -
洗 h wash wash_o 2 home
洗+干净 h wash wash_o_clean2 adei1 -
修 worker,h repair repair_o/fix_o 1 -
修+好 worker,h repair repair_o/fix_o adei2 -
修 driver wheels repair_o/fix_o 1 -
偷+走 thief lost steal_o ei2 *
偷+走 thief wheels steal_o ei2 -
撞+坏 driver wheels damage_o aei1 -
骑 h ride ride_o kn2 out
坐 h transit take_o n2 -
上 h bus get_on_o di1 leave
上 pupil class attend_o/have_o n2 -
上 teacher class teach_o/give_o n1 -
弹 h piano play_o kn2 home
拉 h violin play_o kn1 home
唱 h song sing_o k2 *
画 artist,pupil paint paint_o/draw_o 2 room,out
拍 artist movie make_o/shoot_o 1 city
拍 h photo take_o 2 out
养 h pet keep_o/have_o 2 home
喂 h animal feed_o 1 -
种 farmer,old plant plant_o/grow_o 1 out
等 h friend wait_for_o 2 leave
等 h transit wait_for_o d1 leave
认识 h person know_o si2 -
认识 h star know_o si1 -
喜欢 h goods like_o sg2 -
喜欢 h animal like_o sg2 -
喜欢 h subject like_o/be_fond_of_o sg2 -
喜欢 h music like_o sg1 -
爱 h kin love_o sgd2 -
爱 h subject love_o sg1 -
讨厌 h animal hate_o/dislike_o sg1 -
想 h kin miss_o sd2 -
想 h home miss_o sn1 -
怕 h animal be_afraid_of_o/fear_o sg1 -
怕 h exam be_afraid_of_o sg1 -
了解 h field know_about_o/understand_o sn2 -
了解 h,o situation understand_o/know_o sd2 -
关心 h,o care care_about_o sd1 -
需要 h money need_o sn1 -
需要 h,o time need_o sn1 -
需要 h chance need_o s1 -
需要 h thing need_o s1 -
相信 h person believe_o/trust_o s1 -
帮助 h person help_o 2 *
批评 teacher,boss,kin pupil criticize_o/scold_o aei3 room
批评 h,o policy criticize_o e1 -
表扬 teacher,boss pupil praise_o aei2 study
邀请 h,o star invite_o ei2 -
邀请 h friend invite_o ei1 -
欢迎 h,o guest welcome_o d1 leave
照顾 doctor,kin,h care take_care_of_o/look_after_o 3 home
采访 reporter star interview_o e2 city
抓+住 police thief catch_o/arrest_o aei3 shop
骗 thief,h old cheat_o/deceive_o ei1 -
救 doctor,police care save_o/rescue_o ei1 -
检查 teacher homework check_o dn1 -
检查 doctor patient examine_o 1 in
管理 boss,expert company manage_o 1 -
建 o,worker built build_o e2 city
生产 worker,o product produce_o/make_o 1 work
提高 o,boss price raise_o/increase_o di1 -
提高 h,o level improve_o d1 -
降低 o,boss price lower_o/reduce_o di1 -
保护 h,o environment protect_o 2 -
破坏 h environment damage_o/destroy_o e1 -
改变 h,o plan change_o d2 -
改变 o,official situation change_o d1 -
影响 policy economy affect_o/influence_o s1 -
发展 gov,o economy develop_o 1 -
发展 o technology develop_o 1 -
介绍 expert,teacher situation introduce_o/describe_o d1 -
签 boss,o,official contract sign_o i2 city
宣布 o,official decision announce_o edi2 city
宣布 o,official result announce_o edi1 -
交 pupil homework hand_in_o/hand_o_in ni2 -
交 h money pay_o ni1 -
花 h money spend_o ni2 shop
挣 h money earn_o/make_o n1 city
换 h position change_o i1 -
换 h wear change_o i1 -
准备 h meal prepare_o/make_o n1 kitchen
准备 pupil exam prepare_for_o d1 study
庆祝 h birthday celebrate_o nd1 eat,home
庆祝 h festival celebrate_o n1 home
租 h house rent_o 2 city
咬 bite pupil bite_o eiw2 out
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Frame:
  """A verb with one kind of subject and one kind of object.

  Attributes:
    verb: its Chinese words (two in a compound).
    subjects: who does it.
    object: the tag of the nouns it takes.
    english: wordings, each a tuple of words with `o` for the object.
    flags: letters, see the module.
    places: where it happens.
  """

  verb: tuple[str, ...]
  subjects: tuple[str, ...]
  object: str
  english: tuple[tuple[str, ...], ...]
  flags: str
  places: tuple[str, ...]


def _read(table: str) -> tuple[list[Frame], list[float]]:
  frames, weights = [], []
  for row in table.split("\n"):
    if not row:
      continue
    verb, subjects, obj, english, flags, places = row.split()
    frames.append(
      Frame(
        tuple(verb.split("+")),
        tuple(subjects.split(",")),
        obj,
        tuple(tuple(w.split("_")) for w in english.split("/")),
        flags.rstrip("0123456789"),
        () if places == "-" else tuple(places.split(",")),
      )
    )
    digits = flags.lstrip("abcdefghijklmnopqrstuvwxyz")
    weights.append(float(digits or "1"))
  return frames, weights


_ALL_FRAMES, _WEIGHTS = _read(_FRAMES)
Choice = tuple[tuple[Frame, ...], tuple[float, ...]]  # frames, weight totals


def _choice(fits) -> Choice:
  """The frames for which `wanted(frame)` holds."""
  numbers = [i for i, frame in enumerate(_ALL_FRAMES) if fits(frame)]
  frames = tuple(_ALL_FRAMES[i] for i in numbers)
  return frames, running_totals([_WEIGHTS[i] for i in numbers])


FRAMES = _choice(lambda f: True)
DYNAMIC = _choice(lambda f: "s" not in f.flags)
BA_FRAMES = _choice(lambda f: "a" in f.flags)
BEI_FRAMES = _choice(lambda f: "e" in f.flags)
SKILLS = _choice(lambda f: "k" in f.flags)
FREE_OBJECT = _choice(lambda f: "n" not in f.flags)
ACTIONS = _choice(lambda f: "s" not in f.flags and "h" in f.subjects)
HABITS = _choice(lambda f: not set("sai") & set(f.flags) and "h" in f.subjects)


def _gaps() -> tuple[dict[str, Choice], dict[str, Choice]]:
  subjects = dict.fromkeys(s for f in _ALL_FRAMES for s in f.subjects)
  objects = dict.fromkeys(f.object for f in _ALL_FRAMES)
  by_subject = {s: _choice(lambda f, s=s: s in f.subjects) for s in subjects}
  by_object = {
    o: _choice(lambda f, o=o: o == f.object and "n" not in f.flags)
    for o in objects
  }
  return by_subject, {o: c for o, c in by_object.items() if c[0]}


BY_SUBJECT, BY_OBJECT = _gaps()
