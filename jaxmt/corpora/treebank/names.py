"""Pronouns, places and people of the synthetic corpus.

Rows go from frequent to rare, as in `jaxmt.corpora.treebank.lexicon`.
"""

from jaxmt.corpora.treebank.lexicon import rows, wordings

# Chinese, English subject, object, possessive, reflexive, agreement.
PRONOUNS = {
  row[0]: row[1:]
  for row in rows("""
他 he him his himself 3s
我 i me my myself 1s
她 she her her herself 3s
我们 we us our ourselves pl
他们 they them their themselves pl
你 you you your yourself pl
你们 you you your yourselves pl
她们 they them their themselves pl
它 it it its itself 3s
""")
}

# By English subject form: subject, object, possessive, the Chinese pronoun.
BACK_REFERENCES = {
  row[0]: (row[0], row[1], row[2], zh) for zh, row in reversed(PRONOUNS.items())
}

# Name, English, people's adjective.
_PLACES = """
北京 beijing -
中国 china chinese
上海 shanghai -
美国 america/the_united_states american
日本 japan japanese
英国 britain/england british/english
法国 france french
广州 guangzhou -
香港 hong_kong -
德国 germany german
纽约 new_york -
南京 nanjing -
西安 xi'an -
俄罗斯 russia russian
伦敦 london -
巴黎 paris -
杭州 hangzhou -
韩国 south_korea korean
成都 chengdu -
东京 tokyo -
加拿大 canada canadian
天津 tianjin -
印度 india indian
武汉 wuhan -
意大利 italy italian
重庆 chongqing -
莫斯科 moscow -
澳大利亚 australia australian
青岛 qingdao -
苏州 suzhou -
"""
PLACES = tuple(
  (zh, wordings(en), () if people == "-" else wordings(people))
  for zh, en, people in rows(_PLACES)
)
CITIES = tuple(row for row in PLACES if not row[2])
COUNTRIES = tuple(row for row in PLACES if row[2])

SURNAMES = tuple(
  rows("""
王 wang
李 li
张 zhang
刘 liu
陈 chen
杨 yang
赵 zhao
黄 huang
周 zhou
吴 wu
林 lin
孙 sun
马 ma
高 gao
郭 guo
徐 xu
""")
)

# Characters of given names, one or two to a name: an open class. The last one
# decides between he and she.
GIVEN_NAMES = tuple(
  rows("""
明 ming he
丽 li she
伟 wei he
芳 fang she
强 qiang he
红 hong she
静 jing she
军 jun he
华 hua he
敏 min she
涛 tao he
雪 xue she
建 jian he
文 wen he
燕 yan she
国 guo he
鹏 peng he
晓 xiao he
英 ying she
东 dong he
志 zhi he
海 hai he
玉 yu she
春 chun she
梅 mei she
平 ping he
峰 feng he
云 yun she
杰 jie he
佳 jia she
宁 ning she
""")
)

FOREIGN_NAMES = tuple(
  rows("""
玛丽 mary she
约翰 john he
大卫 david he
安娜 anna she
汤姆 tom he
彼得 peter he
露西 lucy she
史密斯 smith he
杰克 jack he
琳达 linda she
""")
)

# After a surname in Chinese, before it in English.
TITLES = tuple(
  rows("""
先生 mr. he
老师 teacher/mr. he
教授 professor he
女士 ms./mrs. she
经理 manager he
医生 doctor/dr. she
小姐 miss she
部长 minister he
""")
)
