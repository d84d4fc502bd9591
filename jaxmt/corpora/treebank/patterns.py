"""Verbs of the synthetic corpus that are not simply transitive.

Intransitive verbs, motion, and verbs that take a clause, another verb, an
actor, a receiver or a goal.
"""

# Chinese, subjects, English, flags (as above), places.
INTRANSITIVE = tuple(
  (
    zh,
    tuple(subjects.split(",")),
    tuple(en.replace("_", " ").split("/")),
    flags,
    () if places == "-" else tuple(places.split(",")),
  )
  for zh, subjects, en, flags, places in (
    row.split()
    for row in """
工作 h work - work,city
休息 h rest/take_a_rest - home,room
睡觉 h sleep - home,sleep
游泳 h swim k gym
跑步 h run/jog - out
跳舞 h dance k out,room
唱歌 h sing k room,out
散步 h take_a_walk/go_for_a_walk - out
旅行 h travel - country
聊天 h chat - eat,room
学习 pupil study - study,room
哭 child cry - room
笑 h laugh/smile - room
上网 h go_online/surf_the_internet - home
购物 h shop/go_shopping - shop
锻炼 h exercise/work_out - gym,out
结婚 h get_married i city
毕业 pupil graduate i -
迟到 pupil,worker be_late i -
生病 h,pupil fall_ill/get_sick i -
起床 h get_up i -
到达 guest,official arrive i leave
打字 h type k room
发展 economy develop/grow - -
上涨 price rise/go_up i -
下降 price fall/drop i -
变化 situation,policy change - -
""".strip().split("\n")
  )
)

LASTING = ("工作", "休息", "旅行", "学习", "聊天", "锻炼", "散步")
LASTING_ROWS = tuple(row for row in INTRANSITIVE if row[0] in LASTING)

# Going somewhere.
MOTION = (
  ("去", ("go",)),
  ("来", ("come",)),
  ("到", ("go", "come")),
  ("回", ("return", "go back")),
)
HOMEWARD = (("回", ("go", "return")),)

# Verbs with a clause: Chinese, English, state, tense shifts in the past.
CLAUSE_VERBS = (
  ("说", ("say",), ""),
  ("认为", ("think", "believe"), "s"),
  ("觉得", ("think", "feel"), "s"),
  ("知道", ("know",), "s"),
  ("希望", ("hope",), "s"),
  ("听说", ("hear",), ""),
  ("相信", ("believe", "be confident"), "s"),
  ("发现", ("find", "discover"), ""),
  ("表示", ("say", "state"), ""),
  ("担心", ("worry", "be worried"), "s"),
  ("宣布", ("announce", "declare"), ""),
)

# Verbs with another verb: Chinese, English, `to` or `ing`, state.
VERB_VERBS = (
  ("想", (("want", "to"), ("wish", "to")), "s"),
  ("喜欢", (("like", "to"), ("like", "ing"), ("enjoy", "ing")), "s"),
  ("开始", (("begin", "to"), ("start", "ing"), ("start", "to")), ""),
  ("打算", (("plan", "to"), ("intend", "to")), "s"),
  ("决定", (("decide", "to"),), ""),
  ("希望", (("hope", "to"),), "s"),
  ("准备", (("be ready", "to"), ("prepare", "to")), "s"),
  ("愿意", (("be willing", "to"),), "s"),
  ("继续", (("continue", "to"), ("go on", "ing")), ""),
)

# Verbs whose object acts: Chinese, English, infinitive, subjects.
PIVOT_VERBS = (
  ("让", (("let", ""), ("make", ""), ("ask", "to")), "h"),
  ("请", (("ask", "to"), ("invite", "to")), "h"),
  ("叫", (("tell", "to"), ("ask", "to")), "h"),
  ("帮", (("help", ""), ("help", "to")), "h"),
  ("要求", (("require", "to"), ("ask", "to")), "o"),
  ("鼓励", (("encourage", "to"),), "o"),
  ("派", (("send", "to"),), "o"),
  ("允许", (("allow", "to"), ("permit", "to")), "o"),
)

# Verbs of giving: Chinese words, English, object, both orders in English.
GIVING = (
  (("给",), ("give",), "gift", True),
  (("送", "给"), ("give",), "gift", True),
  (("借", "给"), ("lend",), "borrow", True),
  (("卖", "给"), ("sell",), "goods", True),
  (("还", "给"), ("return",), "borrow", False),
  (("寄", "给"), ("send", "mail"), "mailed", True),
  (("交", "给"), ("hand",), "paper", True),
  (("拿", "给"), ("show",), "photo", True),
)

# Moving things with 把: Chinese, English, object, where, preposition there.
MOVING = (
  (("放", "在"), ("put",), "thing", "surface"),
  (("放", "在"), ("put",), "thing", "opened"),
  (("忘", "在"), ("leave",), "lost", "in"),
  (("挂", "在"), ("hang",), "paint", "wall"),
  (("带", "到"), ("bring", "take"), "thing", "org"),
  (("送", "到"), ("take", "send"), "patient", "hospital"),
  (("送", "到"), ("take", "send"), "guest", "leave"),
  (("搬", "到"), ("move",), "furniture", "room"),
  (("翻译", "成"), ("translate",), "opus", "lang"),
)

# Ways of doing: verb, English, adverb of 得, English, subjects.
MANNERS = (
  ("跑", "run", "快", ("fast", "quickly")),
  ("说", "speak", "清楚", ("clearly",)),
  ("写", "write", "好", ("well",)),
  ("唱", "sing", "好", ("well",)),
  ("走", "walk", "慢", ("slowly",)),
  ("学", "learn", "快", ("fast", "quickly")),
  ("睡", "sleep", "好", ("well", "soundly")),
  ("来", "come", "早", ("early",)),
  ("起", "get up", "晚", ("late",)),
  ("开", "drive", "慢", ("slowly",)),
)
