"""Words that carry no topic: function words and question words of the languages most seen in dialogue.

One set serves all languages with spaces, without guessing the language of a three-word query. So words that
carry a topic in another listed language are left out on purpose: German ``die``, ``war`` and ``man``, French
``son``, ``pour`` and ``car``, Italian ``come``, Spanish ``son``. All are in the folded form of
:func:`langgraph_memoryos.text.fold` (case-folded, no Latin accents, no apostrophes).
"""

# ruff: noqa: RUF001 - Cyrillic letters that look like Latin ones are what the Russian list is made of

_ENGLISH = """
a about above actually after again all almost already also although always am an and any anyone anything
are arent around as at away back be because been before being below between both but by can cannot cant
could couldnt did didnt do does doesnt doing done dont down during each either else even ever every
everyone everything few for from further gave get gets getting give given go goes going gone gonna got had
hadnt has hasnt have havent having he her here hers herself hey hi hello him himself his how however i if
im in into is isnt it its itself ive just kind know last let lets like lot lots made make makes many maybe
me might mine more most much must my myself nearly need never no nor not now of off oh ok okay on once one
only onto or other others our ours ourselves out over own per perhaps please put quite rather re really
said same say says see seem seems shall she should shouldnt since so some someone something soon still
such sure take tell than thank thanks that thats the their theirs them themselves then there theres these
they thing things think this those though through thus to too toward towards under until up upon us use
used using ve very via wanna want wants was wasnt way we well were werent what whatever whats when
whenever where wherever whether which while who whoever whole whom whose why will with within without wont
would wouldnt wow yeah yep yes yet you your youre yours yourself
"""

_QUESTION_FRAME = "ask asked describe explain mention mentioned remember recall remind name"

_SPANISH = """
al algo algun alguna ante antes aqui asi aunque cada como con contra cual cuales cuando cuanto cuantos
cuyo de del desde donde dos durante el ella ellas ellos en entre era eran eres es esa esas ese eso esos
esta estaba estado estan estar estas este esto estos estoy fue fueron ha han hasta hay he hola la las le
les lo los mas me mi mis mucho muy nada ni nos nosotros o otra otro para pero poco por porque pues que
quien quienes se sea ser si sido sin sobre soy su sus tambien tan tanto te tener tengo ti tiene tienen
todo todos tu tus un una unas uno unos usted ustedes y ya yo
"""

_FRENCH = """
ai aussi autre aux avec avez avoir avons bonjour c ce cela ces cet cette ceux chez comme d dans de des
deux donc dont du elle elles en est et etait etais ete etes etre eux fait ici il ils j je l la le les leur
leurs lui m mais me meme mes moi mon n ne nos notre nous on ont ou oui par parce pas peu plus pourquoi qu
quand que quel quelle quelles quels qui quoi s sa sans se sera ses si sont suis ta te tes toi ton tous
tout toute tres tu un une vos votre vous y
"""

_GERMAN = """
aber alle allem allen alles als am auch auf aus bei bin bis bist da damit dann das dass dein deine dem den
denn der des dich dir doch dort du durch ein eine einem einen einer eines er es etwas euch euer fur gegen
gibt hab habe haben hallo hatte hatten hier ich ihm ihn ihr ihre im ist ja jede jeder jetzt kann kein
keine konnen mehr mein meine mich mir mit muss nach nicht nichts noch nun nur ob oder ohne schon sehr sein
seine seit sich sie sind so uber um und uns unser unter viel vom von vor wann warum weil welche welcher
welches wem wen wenn wer werde werden wie wieder wir wird wirst wo woher wohin wurde wurden zu zum zur
zwischen
"""

_PORTUGUESE = """
ao aos aquela aquele aqui as ate bem com como da das de dela dele deles depois do dos e ela elas ele eles
em entre era essa esse esta estao estar estava este estou eu foi foram ha isso isto ja la lhe mais mas me
mesmo meu meus minha minhas muito na nao nas nem no nos nossa nosso num numa o ola onde os ou para pela
pelo por porque pra qual quais quando quanto que quem se seja sem ser seu seus so sua suas sou tambem te
tem tenho ter teu tinha tu tua tudo um uma voce voces
"""

_ITALIAN = """
abbiamo ad agli ai al alla alle allo anche ancora avere aveva c che chi ci ciao con cosa cui da dai dal
dalla degli dei del della delle dello di dopo e era erano essere fa fra gia gli ha hai hanno ho i il in io
la le lei li lo loro lui ma mi mia mie miei mio molto ne negli nei nel nella nelle nello noi non nostra
nostro o ogni per perche piu poi quale quali quando quanto quella quelle quelli quello questa queste
questi questo qui sara se sei si sia siamo siete sono sta stato su sua sugli sui sul sulla sue suo suoi
tra tu tua tuo un una uno vi voi
"""

_RUSSIAN = """
а без более бы был была были было быть в вам вас ваш весь во вот все все всего вы где да даже для до его
ее ее если есть еще еще же за здесь и из или им их к как какая какие какой когда кто ли лишь мне меня мной
может можно мой моя мои мы на над надо наш не него нее нее нет ни них но ну о об однако он она они оно от
очень по под почему при про раз с сам свой себя сейчас сколько со так также такой там тебя тем то тобой
тоже только тот ту ты у уже чего чей чем что чтобы эта эти это этот эту я привет
"""

STOP_WORDS: frozenset[str] = frozenset(
    word
    for words in (_ENGLISH, _QUESTION_FRAME, _SPANISH, _FRENCH, _GERMAN, _PORTUGUESE, _ITALIAN, _RUSSIAN)
    for word in words.split()
)
"""Function and question words of the languages that put spaces between words."""

WEB_WORDS: frozenset[str] = frozenset({"http", "https", "www"})
"""Parts of addresses that say nothing of where they lead."""

_CHINESE_PHRASES = """
什么时候 为什么 怎么样 是不是 有没有 能不能 可不可以 什么 怎么 怎样 哪里 哪儿 哪个 哪些 哪位 哪天 哪年
多少 几个 几点 如何 为何 是否 因为 所以 但是 可是 不过 而且 或者 还是 如果 虽然 然后 已经 正在 曾经 可以
能够 应该 需要 想要 觉得 知道 告诉 请问 谢谢 你好 您好 一个 一些 一下 一点 这个 那个 这些 那些 这样 那样
这里 那里 我们 你们 他们 她们 它们 咱们 自己 大家 非常 特别 真的 有点 比较 时候 现在 之前 之后 以前 以后
最近 就是 不是 没有 还有 关于 对于 以及 并且 除了 通过 好的 记得 什麼 怎麼 為什麼 哪裡 這個 那個 我們 你們
他們
"""

_JAPANESE_PHRASES = """
ありがとう こんにちは でしょうか でした ました ません ですか ますか している していた してい される された
です ます した して する から まで より だけ など こと もの ところ これ それ あれ どれ この その あの どの
ここ そこ どこ いつ だれ なに なぜ どう 私は 私の 僕は 僕の 何時 何処
"""

STOP_PHRASES: tuple[str, ...] = tuple(
    sorted(
        {*_CHINESE_PHRASES.split(), *_JAPANESE_PHRASES.split()}, key=lambda phrase: (-len(phrase), phrase)
    ),
)
"""Function and question phrases of languages without spaces, the longest first."""

PARTICLES = "的了着吗呢吧啊呀哦嗯嘛啦哪谁我你您他她它嗎這們誰"
"""Chinese characters that practically never belong to a content word: text may be cut at them."""

FUNCTION_CHARACTERS: frozenset[str] = frozenset(
    "是不在有没很太最更挺都还就才又再也但而或及与跟和给让被把向到从之其这那此每各么個沒還與",
)
"""Chinese characters that are usually a word of their own, but also part of content words (太阳, 和平)."""
