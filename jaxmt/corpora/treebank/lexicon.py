"""Adjectives, numbers, times, adverbs and modals of the synthetic corpus.

Rows go from frequent to rare. `_` stands for a space inside English, `/`
parts wordings (best first).
"""

import dataclasses


def wordings(text: str) -> tuple[str, ...]:
  """Reads `at_last/finally`."""
  return tuple(text.replace("_", " ").split("/"))


def rows(table: str) -> list[list[str]]:
  """Reads a table, a row to a line, columns parted by spaces."""
  return [row.split() for row in table.split("\n") if row]


_ADJECTIVES = """
新 text,vehicle,clothes,device,item,house,plan,policy,product,room new newer j
好 text,show,chance,suggestion,way,result,friend good better j
大 place,vehicle,animal,event,accident,tree big/large bigger/larger j
大 problem,mistake,difficulty big/serious bigger/more_serious j
小 place,item,animal,device small/little smaller j
重要 writing,event,decision,meeting,task,message important more_important -
年轻 person young younger -
漂亮 clothes,kin,city,plant,room,look beautiful/pretty more_beautiful -
高 person,kin tall taller -
高 price,level,high high higher j
聪明 person,animal clever/smart smarter -
旧 text,vehicle,clothes,device,furniture,opened old older j
贵 goods,taxi expensive/costly more_expensive -
便宜 goods,eat,sleep cheap/inexpensive cheaper -
有名 star,org,city,opus,movie famous/well-known more_famous -
著名 expert,artist,writer,org famous/renowned - a
复杂 problem,situation,relation complicated/complex more_complicated -
简单 question,exam,game,way simple/easy simpler/easier -
严重 accident,mistake,difficulty serious/severe more_serious -
难 exam,question,lang,task difficult/hard more_difficult/harder -
有趣 text,show,game,lecture interesting more_interesting -
有意思 story,movie,event,program interesting more_interesting -
长 mailed,meeting,wear,writing long longer j
短 text,event short shorter j
忙 person,kin busy busier p
累 person,kin tired - p
高兴 person,kin happy/glad happier p
生气 person,kin angry angrier p
认真 person serious/conscientious more_serious -
努力 pupil,worker,expert hard-working/diligent more_hard-working -
友好 person friendly friendlier -
善良 person,kin kind kinder -
健康 care,kin healthy healthier -
奇怪 person,situation,message,question,reason strange/odd stranger -
好吃 food delicious/tasty tastier -
新鲜 fruit,meat,crop fresh fresher -
甜 fruit sweet sweeter -
热 drink,bowl hot hotter j
干净 room,venue,wash,sleep clean cleaner -
安静 place quiet quieter -
热闹 city,shop,visit lively livelier -
美丽 city,out,built beautiful more_beautiful -
古老 city,built ancient/old older -
快 vehicle fast faster p
方便 transit,shop convenient more_convenient -
危险 bite,task,transit dangerous more_dangerous -
可爱 animal,care,toy cute/lovely cuter -
重 furniture,opened heavy heavier -
轻 thing,device light lighter p
舒服 furniture,clothes,sleep comfortable more_comfortable -
合理 plan,price,suggestion,decision reasonable more_reasonable -
详细 plan,paper,look detailed more_detailed -
成功 plan,event,experiment successful more_successful -
有效 way,medicine,policy effective more_effective -
先进 technology,repair,lab advanced more_advanced -
特别 gift,way,event special - a
传统 event,dish,field traditional - a
红色 clothes,vehicle,item red - a
白色 clothes,vehicle,device white - a
黑色 clothes,vehicle,device,opened black - a
蓝色 clothes,vehicle,item blue - a
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Adjective:
  """An adjective in one sense.

  Attributes:
    word: Chinese.
    english: wordings.
    comparative: wordings, none when it has no degrees.
    use: j (stands before the noun without 的), a (only before a noun), p
      (only as a predicate), or -.
  """

  word: str
  english: tuple[str, ...]
  comparative: tuple[str, ...]
  use: str


def _adjectives() -> dict[str, list[Adjective]]:
  index: dict[str, list[Adjective]] = {}
  for word, tags, english, comparative, use in rows(_ADJECTIVES):
    higher = () if comparative == "-" else wordings(comparative)
    entry = Adjective(word, wordings(english), higher, use)
    for tag in tags.split(","):
      index.setdefault(tag, []).append(entry)
  return index


ADJECTIVES = _adjectives()

DEGREES = (
  ("很", ("very", "very", "quite", "")),
  ("非常", ("very", "extremely")),
  ("比较", ("rather", "quite", "fairly")),
  ("特别", ("particularly", "especially")),
  ("太", ("too",)),
  ("真", ("really", "truly")),
  ("十分", ("very", "quite")),
)

NUMERALS = tuple(
  (zh, wordings(en))
  for zh, en in rows("""
两 two
三 three
四 four
五 five
十 ten
六 six
八 eight
七 seven
二十 twenty
九 nine
十二 twelve
三十 thirty
十五 fifteen
五十 fifty
一百 one_hundred/a_hundred
十一 eleven
""")
)
_UNITS_ZH = "一二三四五六七八九"
_UNITS_EN = "one two three four five six seven eight nine".split()
_TENS_EN = "twenty thirty forty fifty sixty seventy eighty ninety".split()
# Rare numbers: 21 to 99 without the round ones.
RARE_NUMERALS = tuple(
  (f"{_UNITS_ZH[ten + 1]}十{unit_zh}", (f"{ten_en}-{unit_en}",))
  for ten, ten_en in enumerate(_TENS_EN)
  for unit_zh, unit_en in zip(_UNITS_ZH, _UNITS_EN, strict=True)
)

# What a measure word becomes before English nouns that are not counted.
UNITS = {
  zh: wordings(en)
  for zh, en in rows("""
杯 cup/glass
瓶 bottle
碗 bowl
块 piece
条 piece
个 piece
件 piece
双 pair
副 pair
""")
}

# Several words: Chinese tag, English for things counted, for things not.
QUANTITIES = (
  ("一些", "CD", ("some",), ("some",)),
  ("很多", "CD", ("many", "a lot of"), ("a lot of", "plenty of")),
  ("许多", "CD", ("many", "a large number of"), ("a lot of", "plenty of")),
  ("不少", "CD", ("quite a few", "many"), ("quite a lot of",)),
  ("所有", "DT", ("all the", "all of the"), ("all the",)),
)

LOCALIZERS = {
  "surface": (("上", ("on",)), ("下面", ("under",)), ("旁边", ("beside",))),
  "wall": (("上", ("on",)),),
  "opened": (("里", ("in",)), ("旁边", ("next to", "beside"))),
  "room": (("里", ("in",)), ("外面", ("outside",))),
  "place": (
    ("里", ("in", "inside")),
    ("附近", ("near",)),
    ("旁边", ("next to", "beside")),
    ("前面", ("in front of",)),
    ("对面", ("across from", "opposite")),
    ("后面", ("behind",)),
    ("外面", ("outside",)),
  ),
}

# Words of the time, English; a numeral sign takes a number from NUMERALS.
_TIMES = """
past 昨天 yesterday
past 去年 last_year
past 昨天+晚上 last_night/yesterday_evening
past 上+个+星期 last_week
past #+天+前 #_days_ago
past 上+个+月 last_month
past 今天+早上 this_morning
past 前天 the_day_before_yesterday
past #+年+前 #_years_ago
past 昨天+下午 yesterday_afternoon
past 刚才 just_now/a_moment_ago
past 去年+夏天 last_summer
past 前年 the_year_before_last
past 上+个+周末 last_weekend
future 明天 tomorrow
future 明年 next_year
future 下+个+星期 next_week
future 明天+下午 tomorrow_afternoon
future 下+个+月 next_month
future 今天+晚上 tonight/this_evening
future 后天 the_day_after_tomorrow
future 明天+早上 tomorrow_morning
future #+天+以后 in_#_days/#_days_later
future 下+个+周末 next_weekend
future 星期六 on_saturday/this_saturday
habit 每+天 every_day
habit 每+天+早上 every_morning
habit 周末 on_weekends/at_weekends
habit 每+年 every_year
habit 晚上 in_the_evening/at_night
habit 每+个+星期 every_week
habit 早上 in_the_morning
habit 星期天 on_sundays
habit 夏天 in_summer/in_the_summer
present 现在 now/at_the_moment
present 目前 at_present/currently
present 这+个+星期 this_week
ever 以前 before
state 以前 in_the_past/previously
state 去年 last_year
"""


def _times() -> dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
  index: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
  for tense, zh, en in rows(_TIMES):
    index.setdefault(tense, []).append((tuple(zh.split("+")), wordings(en)))
  return index


TIMES = _times()

# Adverbs before the verb of a habit.
FREQUENCY = tuple(
  (zh, wordings(en))
  for zh, en in rows("""
经常 often/frequently
常常 often
总是 always
有时候 sometimes
一般 usually/generally
很少 seldom/rarely
""")
)

# Adverbs of a whole clause: Chinese, English, tenses, places in English.
ADVERBS = tuple(
  (zh, wordings(en), tuple(tenses.split(",")), tuple(places.split(",")))
  for zh, en, tenses, places in rows("""
也 also past,future,present,progressive,modal middle
终于 finally/eventually past,perfect middle
可能 probably/perhaps future middle
一定 definitely/certainly future middle
又 again past end,middle
马上 immediately/right_away future end
其实 actually present,past middle
还 still present,progressive,modal middle
只 only past,present middle
当然 certainly/of_course present,modal middle
慢慢 slowly past end
最近 recently/lately past,perfect end,front
偶尔 occasionally present middle
突然 suddenly past middle
""")
)

# Modal verbs: Chinese, wordings (tense, words around the verb), negated ones.
MODALS = (
  ("可以", (("can", ""), ("may", "")), (("can", ""), ("may", ""))),
  ("应该", (("should", ""), ("present", "be supposed to")), (("should", ""),)),
  ("能", (("can", ""), ("present", "be able to")), (("can", ""),)),
  ("必须", (("must", ""), ("present", "have to")), ()),
  ("要", (("present", "want to"), ("present", "need to")), ()),
  ("需要", (("present", "need to"),), (("present", "need to"),)),
  ("可能", (("may", ""), ("might", "")), ()),
  ("敢", (("present", "dare to"),), (("present", "dare to"),)),
)
SKILL = ("会", (("can", ""), ("present", "know how to")), (("can", ""),))
