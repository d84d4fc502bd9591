"""The nouns of the synthetic corpus, by kind.

A row is: Chinese, measure words, tags, English wordings. The tags say which
verbs take the noun; one that starts with `+` says how English counts it: `+m`
mass, `+p` plural only, `+t` always with `the`, `+z` never with an article.
A Chinese noun with two rows has two senses, told apart by the verb. Rows of a
kind go from frequent to rare: choice is Zipfian by rank.
"""

import dataclasses

_TABLE = """
[person]
学生 个/名 pupil,care student
老师 位 teacher,star teacher
朋友 个 friend,care friend
医生 位 doctor doctor/physician
孩子 个 child,care child/kid
经理 位/个 boss,star manager
记者 位/名 reporter reporter/journalist
警察 个/名 police police_officer/policeman
同学 个 pupil,friend classmate
司机 个/位 driver driver
工人 个/名 worker worker
老人 位/个 care,old old_man/elderly_man
男孩 个 pupil,care boy
女孩 个 pupil,care girl
病人 个/位 patient,care patient
老板 个/位 boss boss/owner
专家 位 star,expert expert/specialist
客人 位 guest guest/visitor
护士 位/名 doctor nurse
教授 位 teacher,star,expert professor
农民 个/位 farmer farmer/peasant
邻居 个 friend neighbor
工程师 位/名 expert engineer
小偷 个 thief thief
演员 位/个 artist,star actor
科学家 位 expert,star scientist
作家 位 writer,star writer/author
律师 位/名 expert lawyer/attorney
同事 个/位 friend colleague/coworker
校长 位 boss,star principal/headmaster
顾客 位/个 guest customer
官员 位/名 official,star official
市长 位 official,star mayor
服务员 个/位 waiter waiter
游客 个/位 guest tourist/visitor
歌手 位/个 artist,star singer
运动员 名/个 athlete,star athlete
总统 位 official,star president
秘书 个/位 worker secretary
商人 个/位 boss businessman/merchant
画家 位 artist,star painter/artist
厨师 个/位 cook cook/chef
士兵 个/名 athlete soldier
代表 位/名 official representative/delegate
部长 位 official,star minister
教练 位/个 teacher,athlete coach
志愿者 名/个 worker volunteer
居民 位/名 farmer resident
导演 位 artist,star director
飞行员 名/位 driver pilot
渔民 个 farmer fisherman
房东 位/个 landlord landlord
诗人 位 writer,star poet
法官 位/名 official judge
[kin]
妈妈 - f mother/mom
爸爸 - m father/dad
儿子 个 m son
女儿 个 f daughter
弟弟 个 m younger_brother/little_brother
妹妹 个 f younger_sister/little_sister
哥哥 个 m older_brother/elder_brother
姐姐 个 f older_sister/elder_sister
妻子 - f,spouse wife
丈夫 - m,spouse husband
爷爷 - m grandfather/grandpa
奶奶 - f grandmother/grandma
叔叔 个 m uncle
[animal]
狗 只/条 pet,bite dog
猫 只 pet cat
鸟 只 pet bird
马 匹 ride,farm horse
鱼 条 pet,goods fish
牛 头 farm cow
羊 只 farm,pet sheep
熊猫 只 watched panda
老虎 只 watched,bite tiger
猴子 只 watched monkey
[food]
苹果 个 fruit,goods apple
面包 块 goods,bread,+m bread
米饭 碗 rice,+m rice
面条 碗 bowl,dish,+p noodles
鸡蛋 个 goods egg
蛋糕 块/个 goods,dish cake
饺子 碗 bowl,dish,+p dumplings
水果 - goods,fruit,+m fruit
牛肉 块 goods,meat,+m beef
菜 个/道 dish dish
西瓜 个 goods,fruit watermelon
蔬菜 - goods,crop,+p vegetables
香蕉 根 goods,fruit banana
橙子 个 goods,fruit orange
巧克力 块 goods,sweet,+m chocolate
早饭 - meal,+z breakfast
午饭 - meal,+z lunch
晚饭 - meal,+z dinner/supper
药 - medicine,+m medicine
[drink]
茶 杯 goods,cup,+m tea
咖啡 杯 cup,+m coffee
水 杯/瓶 cup,+m water
牛奶 瓶/杯 goods,cup,+m milk
啤酒 瓶/杯 goods,cup,+m beer
果汁 杯/瓶 goods,cup,+m juice
汤 碗 dish,+m soup
[text]
书 本 goods,borrow,thing book
信 封 writing,mailed,thing letter
小说 部/本 writing,goods,borrow,opus novel
报纸 份/张 goods,thing newspaper/paper
文章 篇 writing,opus article
杂志 本 goods,borrow,thing magazine
报告 份 writing,paper,thing report
词典 本 goods,borrow,thing dictionary
故事 个 story story/tale
论文 篇 writing,opus,paper paper/thesis
邮件 封 writing,mail email/e-mail
日记 篇 writing diary
诗 首 writing,opus poem
合同 份 contract,thing,paper contract/agreement
课本 本 goods,borrow,thing textbook
[show]
电影 部 movie,watch movie/film
电视 - watch,+m television/tv
比赛 场 match,watch,event game/match
节目 个 watch,program program/show
新闻 条 watch,news,+m news
京剧 - watch,+m beijing_opera/peking_opera
照片 张 photo,thing,look photo/picture
画 幅/张 paint,goods,look,thing painting/picture
地图 张 look,goods,thing map
音乐 - music,+m music
歌 首 song,music song
讲座 场/个 lecture,event lecture/talk
演出 场 watch,event performance/show
[sport]
篮球 - ball,+m basketball
足球 - kick,+m football/soccer
网球 - ball,+m tennis
乒乓球 - ball,+m table_tennis/ping-pong
羽毛球 - ball,+m badminton
排球 - ball,+m volleyball
太极拳 - ball,+m tai_chi
[instrument]
钢琴 架 piano,goods,+t piano
吉他 把 piano,goods,+t guitar
小提琴 把 violin,goods,+t violin
[vehicle]
车 辆 car,wheels,goods,borrow car
汽车 辆 car,wheels,goods car/automobile
自行车 辆 ride,wheels,goods,borrow bicycle/bike
火车 列 transit train
公共汽车 辆 transit,bus bus
飞机 架 transit,plane plane/airplane
出租车 辆 taxi,bus taxi/cab
地铁 - transit,+t subway/metro
船 条/艘 transit,boat boat/ship
摩托车 辆 ride,wheels,goods motorcycle
卡车 辆 car,wheels truck
[clothes]
衣服 - goods,wash,wear,+p clothes
鞋子 双 goods,pair,wear,+p shoes
帽子 顶 goods,head,thing hat/cap
裙子 条 goods,wash,wear skirt/dress
衬衫 件 goods,wash,wear shirt
裤子 条 goods,wash,wear,pair,+p trousers/pants
大衣 件 goods,wear,thing coat/overcoat
眼镜 副 goods,head,thing,pair,+p glasses
毛衣 件 goods,wash,wear sweater
手表 块 goods,head,thing,repair watch
[device]
电脑 台 goods,switch,repair,borrow,thing computer
手机 部/个 goods,repair,borrow,thing mobile_phone/cell_phone
相机 台/个 goods,repair,borrow,thing camera
空调 台 goods,switch,repair air_conditioner
冰箱 台 goods,repair,furniture refrigerator/fridge
洗衣机 台 goods,repair,furniture washing_machine
电视机 台 goods,switch,repair,furniture television_set/tv_set
机器 台 repair,product machine
收音机 台 goods,switch,repair radio
灯 盏 light,switch light/lamp
[item]
钱包 个 thing,lost wallet/purse
杯子 个 goods,break,wash,thing cup/glass
礼物 件/个 gift,goods,thing gift/present
钥匙 把 thing,lost key
雨伞 把 goods,hold,borrow,thing,lost umbrella
花 朵/束 goods,gift,plant flower
票 张 goods,thing,lost ticket
箱子 个 opened,thing box/suitcase
包 个 goods,opened,thing,lost bag
笔 支 goods,borrow,thing pen
护照 本 lost,thing passport
桌子 张 goods,furniture,surface table/desk
椅子 把 goods,furniture,surface chair
玩具 个 goods,gift,thing,toy toy
床 张 furniture,surface bed
沙发 张/个 furniture,surface sofa/couch
盘子 个 break,wash,thing plate/dish
盒子 个 opened,thing,gift box
本子 个 goods,thing notebook
刀 把 goods,thing knife
瓶子 个 break,thing bottle
树 棵 plant,tree tree
门 扇 door door
窗户 扇 door,break window
墙 面 wall wall
行李 件 thing,lost,+m luggage/baggage
[place]
学校 所 venue,org,visit,at school
图书馆 座/个 venue,visit,study,in library
公司 家 company,org,at,work company/firm
医院 家/所 hospital,venue,visit,in,work hospital
商店 家 company,shop,in store/shop
公园 个 venue,visit,in,out park
饭馆 家 company,eat,in restaurant
超市 家 shop,in supermarket
大学 所 org,visit,at,work university
办公室 间/个 room,in,work office
家 - home,+z home
房间 间/个 room,in room
教室 间/个 room,study,in classroom
银行 家 org,venue,in,work bank
机场 个 venue,at,leave airport
工厂 家/个 visit,org,in,work factory/plant
宾馆 家 company,in,sleep hotel
车站 个 venue,at,leave station
厨房 间/个 room,in,kitchen kitchen
博物馆 座/个 venue,visit,in museum
市场 个 shop,at market
电影院 家/个 venue,at,cinema cinema/movie_theater
邮局 家/个 venue,at post_office
咖啡馆 家 company,eat,in cafe/coffee_shop
体育馆 座/个 venue,in,gym gym/stadium
花园 个 visit,in,out garden
实验室 间/个 room,in,lab laboratory/lab
村子 个 visit,in village
书店 家 company,shop,in bookstore/bookshop
广场 个 visit,in,out square/plaza
城市 座/个 visit,in,city city
房子 座/套 house,goods,built house
大楼 座 built,visit,in building
桥 座 built bridge
山 座 high mountain/hill
[body]
政府 - gov,org,+t government
委员会 个 gov,org committee/commission
部门 个 org department
球队 支 team,org team
组织 个 org organization
法院 - org,+t court
出版社 家 press publishing_house/publisher
[matter]
问题 个 problem,topic problem/issue
问题 个 question question
计划 个/项 plan,topic plan
工作 - job,+m work
工作 份 position,want job
意见 个/条 opinion opinion/view
建议 个/条 suggestion,topic suggestion/proposal
决定 个 decision decision
机会 个 chance,want chance/opportunity
情况 种 situation,topic situation
办法 个 way way/solution
任务 项/个 task task/mission
项目 个 project,plan project
会议 次/个 meeting,event meeting/conference
会 个 congress meeting
活动 个/项 event,organized activity/event
考试 次 exam exam/test
作业 - homework,+m homework
课 节 class class/lesson
消息 个/条 message,+m news
经验 - experience,+m experience
困难 个 difficulty difficulty
错误 个 mistake mistake/error
结果 个 result,topic result/outcome
政策 项/个 policy,topic policy
经济 - economy,+t economy
环境 - environment,+t environment
价格 - price price
关系 种 relation relationship
法律 项/部 law law
技术 种/项 technology technology
产品 种/个 product,goods product
实验 个/项 experiment experiment
电话 个 call phone_call/call
生意 - business,+m business
钱 - money,borrow,+m money
时间 - time,+m time
游戏 个 game game
玩笑 个 joke joke
生日 个 birthday birthday
春节 - festival,+t spring_festival
婚礼 场/个 event,wedding wedding
语言 种 tongue language
原因 个 reason,topic reason/cause
事故 起/次 accident accident
能力 种 level ability
水平 - level level/standard
[subject]
汉语 - lang,subject,+z chinese
英语 - lang,subject,+z english
历史 - subject,field,+m history
数学 - subject,+m mathematics/math
科学 - field,+m science
艺术 - field,subject,+m art
法语 - lang,subject,+z french
文化 - field,+m culture
日语 - lang,subject,+z japanese
医学 - subject,field,+m medicine
哲学 - subject,field,+m philosophy
德语 - lang,subject,+z german
物理 - subject,+m physics
文学 - subject,field,+m literature
"""

HUMAN_KINDS = ("person", "kin")


@dataclasses.dataclass(frozen=True, slots=True)
class Noun:
  """A noun in one sense.

  Attributes:
    word: Chinese.
    kind: the section of the table: it decides which adjectives fit.
    measures: measure words; none when Chinese does not count it.
    tags: what verbs and productions ask for; the kind is one of them.
    count: c (countable), m (mass), p (plural only), t (`the`), z (no article).
    english: wordings, best first.
  """

  word: str
  kind: str
  measures: tuple[str, ...]
  tags: tuple[str, ...]
  count: str
  english: tuple[str, ...]

  @property
  def human(self) -> bool:
    """Whether it is people."""
    return self.kind in HUMAN_KINDS


def _read(table: str) -> list[Noun]:
  nouns, kind = [], ""
  for row in table.split("\n"):
    if row.startswith("["):
      kind = row[1:-1]
    elif row:
      word, measures, tags, english = row.split()
      named = [tag for tag in tags.split(",") if tag[0] != "+"]
      counts = [tag[1] for tag in tags.split(",") if tag[0] == "+"]
      nouns.append(
        Noun(
          word,
          kind,
          () if measures == "-" else tuple(measures.split("/")),
          (kind, *named),
          counts[0] if counts else "c",
          tuple(english.replace("_", " ").split("/")),
        )
      )
  return nouns


NOUNS = tuple(_read(_TABLE))


def _by_tag() -> dict[str, tuple[Noun, ...]]:
  index: dict[str, list[Noun]] = {}
  for noun in NOUNS:
    for tag in dict.fromkeys(noun.tags):
      index.setdefault(tag, []).append(noun)
  return {tag: tuple(nouns) for tag, nouns in index.items()}


BY_TAG = _by_tag()


def marked_plural(noun: Noun) -> Noun:
  """The noun with 们, one word as in the Chinese treebank."""
  return dataclasses.replace(noun, word=noun.word + "们")
