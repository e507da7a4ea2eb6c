"""The words for all subjects of a reply but the mailbox.

Subjects are advice, server, domain, message, client, sender.

Rules use the patterns named ``..._WORDS`` and ``..._NAMES``; the others are parts of them. All are
for the masked text, unless they say otherwise. `patterns` explains the marks that stand for the
words of many languages.
"""

from __future__ import annotations

import re

from .mailbox_words import (
    ANY_MAILBOX,
    CLOSE_TO,
    INVALID,
    POSSESSION_WORDS,
    UNKNOWN,
    UNSPACED_MAILBOX,
    UNSPACED_UNKNOWN,
)
from .patterns import join_column, mark_words, phrases

# --- advice ---------------------------------------------------------------------------------------

ADVICE_START = phrases(r"""
    (?:please|pls|kindly)(?! (?:use|turn|enable|log|configure|send|set|submit))
    (?:double-?)?check  verify  make sure
    ensure  if you  for (?:more|further|assistance|help|additional)
    contact  see  visit  learn more  dsn  refer  report
    you (?:may|can|should|might)  the sender should  message (?:id|generated)
    veuillez  merci de  verifiez  por favor  verifique
    compruebe  revise  bitte  uberpruf\w+  prufen
    si prega  prego  verificare  controll\w+  prosze  sprawdz  пожалуиста  проверьте
""")
REFUSAL = phrases(r"""
    black  block  reject  refus  den(?:y|ied)  \blist(?:ed|ing)
    reputation  spamhaus  banned  accept  external
    internal
    not (?:allowed|permitted|authori)  unauthori  prohibit
    relay  authenticat  quota  full  \bdns  \bptr  \bspf  dkim
    dmarc  gr[ea]y-?list  too (?:many|much)  limit  throttl
    suspend  disabled  \bips?\b  xipx  verif\w+ fail
    certif  \bpec\b  \bonly\b  \blater\b
""")
# "Please check the address": a sentence after the reason. A sentence with a word for a refusal is
# not advice.
ADVICE = re.compile(
    rf"(?:(?<=[.;!?,)])|\s-+|\(|(?<=\w)(?= please (?:check|verify|contact|make sure|see|visit)\b))"
    rf"\s*(?:sorry,? |so |then )?{ADVICE_START}\b(?:(?!{REFUSAL})[^.;!?])*+(?:[.;!?]+|$)"
)

# --- server ---------------------------------------------------------------------------------------

SERVER_PART = phrases(r"""
    server  internal  local  system  look-?up  database  db
    ldap  dns  directory  resolver  alias  disk  memory
    resource  storage  configuration  backend  filters?
    software  i/o  file ?system  queue  mail system  map  table
    verification  validation
""")
SERVER_FAILURE = phrases(r"""
    errors?  problems?  fail\w*  trouble  shortage  locked
    issues?  unavailable  exhausted  insufficient  full  down
    not available
    timed? ?out  corrupt\w*  crash\w*
""")
SERVER_FAILURE_WORDS = phrases(rf"""
    \b{SERVER_PART}s?\b[^.;]{{0,24}}\b{SERVER_FAILURE}
    insufficient (?:system|disk|memory|resource|storage)\w*  (?:error|problem) in processing
    \b{SERVER_FAILURE} (?:while )?writing  timed? ?out  \bbusy\b
    out of memory  shutting down  maintenance  unable to (?:lookup|look up|verify|connect|contact)
    \b{SERVER_FAILURE} (?:in|during|of|with) [^.;]{{0,24}}\b{SERVER_PART}\b
    (?:could|can)(?: ?not|n't|'t) (?:be )?(?:connect|contact|reach|complet|verif|check|creat|load|open|access|sav)\w*
    (?:could|can)(?: ?not|n't|'t) (?:be )?(?:stor|resolv)\w*
    unexpected error  domain problem  space shortage  try (?:another|a different) (?:mail ?)?server
    delai (?:d'expiration|d'attente) depasse
""")
"""Something on the server does not work."""

RETRY_WORDS = phrases(r"""
    \blater\b  try (?:it )?again  \bretry  come back  \bdeferr?ed  please wait  try (?:in|after)
    (?:temporar\w+|currently|momentarily) (?:unavailable|not available|unable|fail\w*|delayed)
    (?:temporar\w+|currently|momentarily) (?:deferred|reject\w*|refus\w*)
    plus tard  reessayer  mas tarde  intentelo  piu tardi  riprov  spae?ter  mais tarde
""")
"""The server asks to try again later."""

FOREIGN_MESSAGE_WORDS = rf"\b{join_column('message')}\b"
"""The message: what is blocked may be this, not the mailbox."""

TEMPORARY_WORDS = mark_words(r"""
    \bholidays?\b  \btoday\b  currently (?:unknown|not found)  synchroni[sz]
    \b(?:at|for) (?:the|this) (?:moment|time)\b  \bright now\b  \bfor now\b  \bat present\b
    (?:un|not )available (?:now|yet)\b
    (?:abled|activated|closed|suspended|locked|available|active) during\b
    temporar  temporal  temporane  temporair  vor(?:ue|ü)bergehend
    tijdelijk  tymczasow  tillf[äa]llig  midlertidig
    ge[çc]ici  do[čc]asn  p[řr]echodn[ěe]\b  momentan  momentán
    moment[ée]  moment[áa]ln  provisori?[aos]  provvisori
    (?:por|de) el momento  por (?:ora|agora)  por enquanto
    per (?:ora|il momento)  pour (?:l'instant|le moment)
    derzeit  zurzeit  zur zeit  voorlopig  momenteel
    f[öo]r tillf[äa]llet  forel[øo]pig  for tiden  chwilowo  czasowo
    v[äa]liaikais  toistaiseksi  ajuti(?:selt|ne)
    [īi]slaic[īi]g  uz laiku  laikin  ideiglenes  [áa]tmenetileg
    privremen  za[čc]asn  приврем[ео]н  t[íi]mabundi[ðd]  aldi baterako  sementara  t[ạa]m th[ờo]i
    на время  пока\b  поки\b  временно  тимчасово  уақытша
    დროებით  ժամանակավոր  προσωρινά  مؤقت  موقت  זמנית  כרגע
    maint[ei]nance  mantenimiento  manutenzione  manuten[çc][ãa]o
    \bwartung  onderhoud  konserwacj  prac\w* techniczn
    [úu]dr[žz]b  underh[åa]ll  vedlig?eholdelse  vedlikehold
    huolto  karbantart  \bbak[ıi]m  обслуживани  обслуговуванн
    техническ\w+ работ  συντήρηση  صيانة  תחזוקה  维护  維護  メンテナンス  점검  pemeliharaan  b[ảa]o tr[ìi]
    vacaciones  vacances  \burlaub  \bferi[ae]\b  \bférias
    в отпуске  urlop  dovolen  tatil  休假  休暇  휴가
    (?:todav[íi]a|a[úu]n) no  pas encore  noch nicht  non ancora
    ainda n[ãa]o  ещ[её] не\b  ще не\b  nog niet
    jeszcze nie  je[šs]t[ěeě] n  hen[üu]z  [äa]nnu inte
    (?:endnu|enn[åa]) ikke  ακόμη?  尚未  还没  還沒  まだ  아직
    en attente  in attesa  en espera  oczekuj  ожида  in behandeling  en cours d
    ชั่วคราว  अस्थायी  暂时  暫時  临时  臨時  暂停  暫停  一時的  一時停止  일시
""")
"""For now: nothing is established."""

DOUBT_WORDS = mark_words(r"""
    ^if (?:the|this|that)\b  \b(?:say|tell|known?|disclose) (?:whether|if)\b
    (?<!it )\bseems?\b  \bapparently\b  \blooks\b  \bi think\b
    \bmay be wrong\b  (?<!not )\bappears? to\b
    \bpossibly\b  \bprobably\b  \bperhaps\b  \bmaybe\b  \beither\b[^.;]* or\b
    peut-[êe]tre  probablement  quiz[áa]s  tal vez
    posiblemente
    probablemente  \bforse\b  probabilmente  talvez  provavelmente
    vielleicht  m(?:oe|ö)glicherweise  wahrscheinlich
    \bmisschien  \bmogelijk  \bwaarschijnlijk  \bkanskje
    \bkanske  \bm[åa]ske\b  \bm[öo]jligen  \bmuligvis  \bmuligens
    \behk[äa]\b  mahdollisesti  v[õo]ib-?olla  iesp[ēe]jams
    varb[ūu]t  galb[ūu]t  gali b[ūu]ti  by[ćc] mo[żz]e
    prawdopodobnie  (?<!nie )\bmo[žz]n[áo]\b  pravd[ěe]podobn[ěe]
    \besetleg  val[óo]sz[íi]n[űu]  \bmo[žz]da\b
    \bmorda\b
    возможно  вероятно  может быть  можливо  можда  \bbelki
    muhtemelen  olabilir  \bίσως  πιθαν  ربما  محتمل  אולי
    ייתכן  \be\.g\.,? mailbox  \bbut will (?:accept|attempt|deliver|forward)
    \bsembl[ea]\b  \bparece\b  \bscheint\b  \blijkt\b  wydaje si[ęe]  zd[áa] se  кажется  похоже
    il se peut  \bpuede que  \bpode(?:m)? (?:estar|ficar)  \bpotrebbe  ενδέχεται
    \bmungkin  \bco the\b  có thể  \bco le\b  شاید  ممکن  可能  也许  也許  かもしれ  おそらく  가능성  않을 수 있  อาจ
""")
"""Said of the reason: nothing is established."""

INCOMPLETE_WORDS = phrases(r"""
    \bout of date  \bolder than\b  \belsewhere\b
    \bincomplete  \bstale\b  \bpending\b  \brebuil\w+  \bre-?index\w*  \bread-?only\b  \btest mode
    \b(?:this|other|another) (?:\w+ )?(?:node|replica|shard)\b
    \b(?:replica|cluster)\b  \bset-?up\b  \bbeing set up
    (?:primary|secondary|backup|fallback|standby) (?:mx|mail ?server|server|exchanger)
    \b(?:hop count|(?:too many|maximum|\d) hops|(?:mail|routing|forward\w*|possible) loop|loop (?:detected|found))
    \bdelegated mailbox\b
    \b(?:archive|journal\w*|catch-?all|default|fallback|public folder|moderator) (?:mailbox|recipient|address|user)\b
    \bprocmail\b  \bsieve\b  \b(?:message|mail) (?:was |is )?accepted\b  \bin time\b
    (?<!being )(?<!not )\baccept(?:ed|s) (?:by|for|such|this)\b
    (?<!not a )\b(?:is valid|exists?|known|ok)[,;]? but\b  \bvalid but\b
    \bbeing (?:restored|moved|migrated|created|repaired|transferred)
    \btomorrow\b  \brewrit(?:e|ing)\b
    \b(?:bind|database|db|ldap|sql|service|reseller|web ?site(?:'s)?|hosting|ftp|proxy|api) (?:user|account)s?\b
    \bhoney-?pot  \bservice (?:is )?(?:temporarily )?unavailable
""")
"""The server does not know every mailbox, is not in normal operation, or got a looping message."""

ONE_OF = mark_words(r"""
    alguno?s?(?: de los)?  uno de los  certains(?: des)?
    (?<!au moins )un des  einige(?: der)?  einer der
    alcuni(?: dei)?  uno dei  alguns(?: dos)?  um dos
    некоторые(?: из)?  один из  деякі  один з  sommige
    [eé]{1,2}n van de  niekt[óo]rzy  jeden z
    n[ěe]kte[řr]\w+(?: z)?  n[áa][ěe]kter\w+(?: z)?  n[åa]gon av
    en av  en af  nogle af  bir[ıi]
    ένας από τους  ορισμένοι  أحد  بعض  אחד מ?ה?  חלק מה?
""")
UNSPACED_ONE_OF = mark_words("部分  其中一个  其中一個  有些  一部の  일부 ?")
DATABASE = mark_words(r"""
    \bldap  \b\w*sql\b  base de datos  base de donn[ée]es
    annuaire  \w*datenbank  banca dati  \bdatabase
    banco de dados  баз[аыуе] данных  база даних  baza danych
    datab[áa]z\w*  veri ?taban\w+  databas  βάση  قاعدة  מסד
    数据库  資料庫  データベース  데이터베이스  (?:da|ta)tabank
""")
BROKEN = mark_words(r"""
    err(?:eur|ore|o)\b  err?or  erro\b  \w*fehler  fout
    \bfe(?:l|jl|il)\b  b[lł][ąa]d\w*  chyb\w+  hata\w*  ошибк\w+
    помилк\w+  σφάλμα  خطأ  שגיא  错误  錯誤  エラー  오류
    indispon  no disponible  non disponibile  nicht (?:erreichbar|verf[uü]e?gbar)
    niet (?:bereikbaar|beschikbaar)  niedost[ęe]pn  nedostupn  недоступ  不可用  接続
""")
SEVERAL_RECIPIENTS_WORDS = phrases(rf"""
    \b{ONE_OF}[ -]?{ANY_MAILBOX}\b  {UNSPACED_ONE_OF}{UNSPACED_MAILBOX}
    \bfor one of
    \b(?:some|one or more|at least one|\d+) (?:of )?(?:the )?(?:\d+ )?recipients?\b
    \b(?:some|several|one) of (?:the|your|these) (?:recipients|users|addresses|mailboxes)\b
    \b(?:some|several) (?:users|addresses|mailboxes)\b  \bb?cc user
    \b(?:previous|first|earlier|last|other|another|next|b?cc) (?:recipient|address|rcpt)\b
    \bmax\w* (?:\w+ ){{0,2}}(?:recipients|addresses)\b
""")
"""It may be another recipient that is unknown."""

FOREIGN_TROUBLE_WORDS = rf"{DATABASE}.{{0,24}}?{BROKEN}|{BROKEN}.{{0,16}}?{DATABASE}"
"""The server's database does not work; rules for English are in `rules`."""

OFFLINE_WORDS = mark_words(r"""
    \boffline\b  hors ligne  sin conexi[óo]n
    (?:non|fuori) in linea  автономн  オフライン  离线  離線  脱机  脫機
    오프라인
    quarant[äa]\w+  quar(?:e|en)nt[ai]\w+  cuarentena
    quarentena  karantin  карантин  isoliert  検疫  隔离  隔離  격리
""")
"""The mailbox cannot be reached now, or the message is in quarantine: nothing is established."""

# --- domain ---------------------------------------------------------------------------------------

FOREIGN_UNKNOWN = join_column("unknown", foreign=True)
FOREIGN_DOMAIN = join_column("domain")
UNSPACED_DOMAIN = join_column("domain", spaced=False)
DOMAIN_UNKNOWN_PREDICATE = phrases(r"""
    not found  unknown  does ?n[o']t exist  not exist  invalid
    lookup  unresolv\w*  suspended  disabled  expired
    not (?:local|hosted|served|handled|accepted|configured|here)
""")
DOMAIN_UNKNOWN_WORDS = phrases(rf"""
    \b(?:domain|host(?:name)?|mx|name server|dns)\b[^.;]{{0,36}}\b{DOMAIN_UNKNOWN_PREDICATE}
    \b(?:{INVALID}|no such|valid) (?!in |at |on |for )(?:\w+ ){{0,2}}(?:domain|host|mx)\b
    \b(?:account|user|address|recipient|mail ?box) or domain\b  \bdomain must exist
    (?:\bdomain|xhostx|\w\.[a-z]{{2,12}}) is (?:not|no longer) (?:an? |our )(?:customer|subscriber)
    \b(?:server|{FOREIGN_DOMAIN})\b[^.;]{{0,30}}\b{FOREIGN_UNKNOWN}
    {UNSPACED_DOMAIN}{CLOSE_TO}{UNSPACED_UNKNOWN}
    \b(?:{FOREIGN_UNKNOWN}|{join_column("before")}) (?:domain|{FOREIGN_DOMAIN})\b
    {join_column("before", spaced=False)}[^.;,。、,]{{0,12}}?{UNSPACED_DOMAIN}
    find (?:the|a) (?:recipient |valid )?(?:domain|mx|host)
    loops? back  \bdns\b[^.;]{{0,36}}\bno such
    \b(?:found|known|exist) in (?:the )?dns\b  name service error  all relevant mx records
""")
"""The server cannot resolve the domain, so nothing is known of the mailbox."""

# --- other subjects -------------------------------------------------------------------------------

MESSAGE = r"(?:message|mail|connection|transaction|service|session|command|attachment|e-?mail)"
OTHER_SUBJECT_WORDS = phrases(rf"""
    \b{MESSAGE}s?\b[^.;]{{0,30}}\b(?:reject|rejet|refus|unavailable|not accept|fail|declin|discard)
    \b(?:may|might)\b  {DOUBT_WORDS}  {OFFLINE_WORDS}  \w\?\w  \?{{3}}
    go away  {TEMPORARY_WORDS}  \bor not local  unverified  \bnot (?:be )?verified
    not responsible
    \b(?:domain|host|list|argument|parameter)\b
    \b{join_column("domain")}\b  {join_column("domain", spaced=False)}
    {RETRY_WORDS}  {SERVER_FAILURE_WORDS}
    \bverif  uberpruf  {UNKNOWN} (?:error|command|reason)
    \bencrypt  \boffline\b  \bdatabase\b  disk ?space
    unable to (?:process|validate|parse|normali[sz]e|decode|rewrite)
    (?:system|server) is not configured
    (?:maximum|exceeds) allowed  any more mail  space available  too large
    (?:not|n't) want  \bno permi  \bdeny\b
    refus\w+ (?:your|this|the)  \bloop\b  \bexpansion
    not attempted  too big  \berror in  unable to check
    (?:could|can) ?n[o']t (?:look|check)  {UNKNOWN} (?:failure|mailer)  \bdied\b  await
    \bsize\b  (?:cannot|can't|could not|unable to) (?:determine|confirm)
    by another process  several matches
    recipient (?:mail )?system\b
    not unique  more than one
    \bambiguous  \bno (?:valid )?route  (?:media|mailer|system|network|configuration|output) error
    \btransport\b
    create (?:user )?output  regular file  \bon hold\b
    \bdelayed\b  \bauto-?reply  refuses? to  \blicen[cs]e
    n't (?:authori[sz]ed|allowed|permitted)
    \b{join_column("error")}\b  {join_column("error", spaced=False)}
    \b(?:user|recipient) (?:reject|refuse)s?\b  \bpaused  migrat
    \bvacation  out of (?:office|town)  \blegal
    investigation  unsubscribed  suppressed  reachable
    attachment  \bnot (?:yet|ready)\b  corrupt  \buntil\b
    for \d+ (?:minute|hour|day)  \bkey\b  \bsigned\b  web ?site  contact form  \bfilter  signature
    \b(?:quota|status|state|type|family|agent|protocol) (?:is )?(?:not found|unknown)
    \bmust\b  \brequires\b
    \bno such (?:command|exchanger|file|mail|network|newsgroup|option|service)\b
    in (?:use|transition)\b
    user (?:connection|closed|deleted|disabled|removed)
    \broute  \brout(?:ed|ing)\b  \bhome\b  \borgani[sz]ation of
    \bfax\b  \bspecified\b  \bheaders?\b  \bmissing\b
    \bcharacters?\b  not local\b  not confirmed  \bconfirmed his  too long  \blength\b  \bvalidat
    \b(?:quota|no) record  \btable\b  \bstore\b  mailbox (?:is )?locked\b  \bservice suspended
    {POSSESSION_WORDS}
    \bforbid  hangup  syntax error  \bsequence\b  \bsession\b
    by customer  reserved  full(?:y[- ]qualif|$)
""")
"""The text is about the message, the session or the server.

Then an enhanced code alone does not mean the mailbox.
"""

# --- client ---------------------------------------------------------------------------------------

HOST = r"(?:host|server|system|machine|isp|provider|site|gateway|hostname|smtp)"
CLIENT = phrases(rf"""
    \bips?\b  \bipv[46]\b  \bip[- ]?addr\w*  \bclient\b  \bmta\b  \bnetwork\b  connections? from
    \b(?:your|sending|remote|connecting|source|originating|this|sender'?s) (?:mail ?)?{HOST}\w*
    \b(?:votre|su|seu|suo|tuo|ihre?) (?:serveur|servidor|server|mailserver)\b
""")
"""Names of the client: the machine that connects."""

REFUSED = phrases(r"""
    block(?:ed|ing|s)?\b  banned  den(?:y|ied)\b  refus\w+
    reject\w*  black-? ?list\w*  block-? ?list\w*
    not (?:been )?(?:allowed|permitted|authori[sz]ed|accepted|welcome|trusted|in (?:the |our )?(?:white|allow)-?list)
    unauthori[sz]ed  restricted  prohibited  throttl\w+
    rate[- ]limit\w*  limited  deferred  suspended  forbidden
    filtered  bloque\w*  bloccat\w+  rifiutat\w+  bloquead\w+
    rechazad\w+  rejeitad\w+  gesperrt  abgelehnt
    abgewiesen
""")
"""What a server does to a client that it refuses."""

FOREIGN_LISTED = join_column("listed")
UNSPACED_LISTED = join_column("listed", spaced=False)
TOO_MANY = join_column("too_many")
UNSPACED_TOO_MANY = join_column("too_many", spaced=False)

# "Your" means the client or the sender, except before the message and its recipient.
DELIVERY = r"e-?mail (?:to|(?:could not|cannot) be delivered|was not delivered)\b"
# "Ваш аккаунт не найден": the sender's account; the recipient may be called yours, too.
YOUR = mark_words(r"""
    uw  din  ditt  deres  tw[oó]j\w*  pa[ńn]stwa  v[áa][šs]\w{0,3}
    ваш\w{0,4}  j[uū]s[uų]  tavs  teie  az [öo]n
    сіздің  თქვენი  ձեր
""")
YOURS = mark_words(r"dumneavoastr[ăa]  anda  σας  שלך  c[uủ]a b[aạ]n  شما")
UNSPACED_YOUR = mark_words("您的  你的  お客様の  あなたの  귀하의  당신의  고객님의  आपका  आपके")
RECIPIENT = mark_words(r"""
    destinat  recip  empf  ontvang  geadr  mottag  modtag
    mottak  vastaanot  odbiorc  adres[aá]t  p[řr][ií]jem
    c[ií]mzett
    primatel  primal  prejemn  получат  адресат  одержувач
    отримувач  παραλ  penerima  saaja  gav[eė]j  sa[nņ][eē]m
    алушы
""")
SENDING = mark_words(r"""
    verzendende  s[äa]ndande  sendende  отправляющ\w+
    wysy[łl]aj[ąa]c\w+  odes[íi]laj[íi]c[íi]  odosielaj[úu]c\w+
    (?:der|die) sendet
    que env[íi]a  che invia  qui envoie  发送(?:用户|者|方)  送信(?:ユーザー?|者)  보내는
""")
ALLOWED_LIST = mark_words(r"""
    listas? blancas?  listes? blanches?  list[ae] bianc\w+
    listas? brancas?  (?:wei(?:ss|ß)e? ?|positiv)liste
    witte lijst  bia[łl]\w+ lis(?:t|ci)\w+
    b[íi]l\w+ (?:listin\w*|seznam\w*)  бел\w+ спис\w+  біл\w+ спис\w+
    vit ?lista\w*  hvid ?liste  hvite ?liste  beyaz liste  λευκή λίστα  القائمة البيضاء  רשימה לבנה
    白名单  白名單  ホワイトリスト  화이트리스트
""")
CLIENT_OR_SENDER_WORDS = phrases(rf"""
    fully[- ]qualified (?:domain|host)
    \b{YOUR} (?!{RECIPIENT}){ANY_MAILBOX}\b  \b(?!{RECIPIENT}){ANY_MAILBOX} {YOURS}\b
    {UNSPACED_YOUR} ?{UNSPACED_MAILBOX}
    \bhesab[iı]n[iı]z  \btiliasi\b  حسابك  {SENDING}
    \bsend(?:er|ing)  mail ?from\b  \berrors?-to\b  \bsasl\b
    \bconnector\b  \bpartner\b  \bfirewall  \boutside\b
    {ALLOWED_LIST}  \banonymous  \bencrypted  unencrypted  known to be valid
    \bfrom:? (?:address|field|header)
    (?:\bfrom:|^from) (?:user|account|mailbox)  known to you\b  return[- ]?path
    reverse[- ]?path  originat  envelope[- ]from
    return(?:ed)? address  \breply[- ]?(?:to|address)  \bsubmit
    \bposters?\b  \bchosen (?:not )?to\b  \bopted\b
    parental  used to send  \bto send\b  \bmay not (?:send|write|post)\b
    \bauthor(?:'s)?\b  (?:back|return)\w* verif
    \b(?:can ?not|can't) send (?:\S+ ){{0,2}}from\b
    you are sending  \byou (?:claim|send|use|have no|do(?: not|n't) have)\b  \byou(?:'re| are) not\b
    log-?in (?:fail|incorrect|denied)  \bheader address  \bin (?:the )?from\b
    members?[- ]only  \bnon-?members?\b  \bmember(?:ship)? list\b
    \bbatv  \bsrs\b
    \bverp\b  backscatter
    \bdsns?\b  \bbounce
    \b(?:user|recipient) refused to  \brule imposed  (?:not|n't) want (?:your|this|any)\b
    \bmessage contains  \be2110\b  verification in progress
    \bhelo\b  \behlo\b  \barguments?\b  \bparameters?\b  \bspf\b
    \bdkim\b  \bdmarc\b  spoof  forge(?:d|ry)?\b
    \brelay  relais  \bgateway  \bconnecting
    \bremote (?!(?:mail )?(?:server|host) (?:returned|said|after))
    \bhost \(? ?xipx
    \bips?\b  \bipv[46]\b  \bclient\b  \brdns\b  \bptr\b  host ?name  \baddr\w*:? \(? ?xipx(?!\W*$)
    \b(?:server|host|machine|network|system)'?s? (?:address|name|ip)\b
    polic(?:y|ies)  politi(?:que|ca)  richtlinie  prefer
    complian  certificate  \btls\b  protected by  security
    (?:black|block|white|deny|allow|reject|gr[ae]y)[- ]?list  \brbl  dnsbl  reputation
    spam  indesirable  no deseado  indesiderat  unerwu?e?nscht
    unsolicited  \bjunk  \bbulk\b  virus  malware  phish
    abus  suspicious  suspect  quarantin  content
    \bblock(?:ed|ing|s)?\b  \bbanned\b  \bdenied\b  \brefused by
    refuses  prohibit  forbidden  restrict  external
    internal  unauthori[sz]ed  not (?:authori[sz]ed|allowed|permitted)  permission
    only accept  not (?:currently )?accept
    authenti(?:cat|fi|se)  autentic  \bauth\b  credential  password
    too (?:many|much)  \brate\b  \blimit  throttl  frequen  volume
    \byour (?!message|letter|mail\b(?! ?server)|{DELIVERY}|recipient|intended|envelope recipient)
    \b{join_column("others")}\b  {join_column("others", spaced=False)}  adresse ip
    \b{join_column("refused")}\b  {join_column("refused", spaced=False)}
    \b{FOREIGN_LISTED}\b  {UNSPACED_LISTED}  \b{TOO_MANY}\b  {UNSPACED_TOO_MANY}
    \b(?:votre|vos|ton(?! tai))\b(?! message| destinataire| correspondant)  \b(?:tuo|suo|vostro)\b
    \b(?:ihre?|deine?)\b
    \bse?u[as]? (?:ip|direccion|servidor|dominio|cuenta|correo|usuario|conta|endereco)\b
""")
"""Any word for the client or the sender: beside one of these, no word about a mailbox counts."""

FOREIGN_CONNECTIONS = mark_words(r"""
    соединени  подключени  з'єднань  підключень  връзки
    połączeń  spojen[íi]  pripojen[íi]  kapcsolat  verbindingen
    anslutningar  forbindelser  tilkoblinger  yhteyksi  ühendus
    savienojum  ryši  prijungim  veza  povezav  bağlant
    συνδέσεις  اتصال  חיבורים  连接  連線  接続  연결  kết nối  koneksi
""")
CAPACITY_WORDS = phrases(rf"""
    too many (?:\w+ ){{0,3}}(?:connections?|sessions?|errors?|processes|commands|transactions)
    too many (?:\w+ ){{0,3}}messages (?:in|per|this|on)(?! (?:the |this |his )?(?:server|mail ?box))
    too many (?:\w+ ){{0,2}}(?:in|on|per|during) (?:this |one |a |the )?(?:session|connection)\b
    (?:connection|session)s?[- ](?:rate |count )?limit  connection rate
    (?:max\w*|number of)[^.;]{{0,30}}(?:connections|sessions)
    concurrent (?:\w+ )?(?:connections|sessions)
    max\w* messages? per (?:connection|session)  slow(?:ing)? down
    overload  load (?:average )?(?:is )?too high  server ports are busy  \bhl:i[cf]c\b
    (?:{TOO_MANY}|{UNSPACED_TOO_MANY})[^.;,]{{0,20}}{FOREIGN_CONNECTIONS}
    trop de connexions  demasiadas conexiones
    troppe connessioni  zu viele verbindungen  muitas conexoes
""")
"""Too many connections or sessions at once, or a server under load."""

SENDER = r"\b(?:sender|helo|ehlo|mail ?from|from|return[- ]path|envelope)(?:'s)?"
BLACKLIST_WORDS = (
    r"(?:\b(?:black|block|deny|ban|reject|bad|spam(?:mer)?)[- ]?list(?:ed|ing|s)?\b"
    rf"|\b{FOREIGN_LISTED}\b|{UNSPACED_LISTED}"
    r"|\b(?:liste noire|lista (?:negra|nera|neagra)|sperrliste|schwarze\w* liste))"
)
DNS_LIST_NAMES = phrases(r"""
    spamhaus  spamcop  barracuda ?central  barracuda reputation
    \bsorbs\b  abuseat  \bcbl\b  dns ?[bw]?l\b  dnsbl
    dnsrbl  \brbls?\b  \brbl[+ -]  uceprotect  psbl  invaluement
    mailspike  nixspam  manitu  senderbase
    sender ?score  trustedsource  cloudmark  talosintel
    backscatterer  hostkarma  junkemailfilter  njabl  spamrats
    gbudb  mail-abuse  ers\.trendmicro  blackhole  ipcheck\.
    spfbl  swinog  surriel  wpbl  lashback  ascams
    blocklist\.de  drbl  \bers-  abusix  \bxbl\b  \bpbl\b  \bsbl\b  0spam  ipadmin\.  blocked using
    blocked by (?:\S+\.){2}  (?<!not )listed (?:at|by|in|on) (?:[\w-]+\.){2}
""")
"""Names of DNS lists of IP addresses, for the unmasked text."""

DOMAIN_LISTED_WORDS = phrases(rf"""
    {SENDER}[ -](?:address|domain|hostname)\b[^;]{{0,60}}\b(?:listed|blocked using|{BLACKLIST_WORDS})
    \bdomain\b[^.;]{{0,40}}(?:\blisted\b|{BLACKLIST_WORDS})
    {BLACKLIST_WORDS}[^.;]{{0,20}}\bdomain\b
    \bsender (?:xaddrx )?(?:is |was )?{BLACKLIST_WORDS}
    \byour e-?mail address[^.;]{{0,20}} {BLACKLIST_WORDS}
""")
REVERSE_DNS_WORDS = phrases(rf"""
    reverse[- ]?(?:dns|look-?up|resol\w+|host\w*|name|mapping|record|ip|zone|client|address)
    \brdns\b  \bptrs?\b
    fc-?rdns  forward[- ]?confirm  cannot find your  ip name (?:look|possibly forged)  hostname look
    (?:your|client|sending|remote|connecting) (?:\w+ ){{0,2}}[^.;]{{0,40}}\b(?:not|n't|unable to) resolve
    (?:dns|host ?name) (?:entry |record |found )?(?:for|of) (?:your|client|xipx)
    no (?:valid )?(?:dns|host ?name) (?:entry|record|found)
    (?:your|sending|connecting) (?:\w+ ){{1,2}}(?:is |was |does )?not (?:exist|found|listed|registered) in (?:the )?dns
    (?:your|client|connecting) (?:host|ip|server)\w* (?:has no|without) (?:a )?(?:dns|name)
    \bip\b[^.;]{{0,20}}\bresolv
    \bdns (?:revers[eo]|invers[eo])
    (?:resolucion|risoluzione|resolution|resolucao) (?:dns )?invers[ae]
    \b{join_column("reverse_dns")}  {join_column("reverse_dns", spaced=False)}
""")
ACCESS_NETWORK_WORDS = phrases(r"""
    \bdynamic(?:ally)?\b  dial-?up  residential  \ba?dsl\b
    generic (?:ptr|r?dns|host)  end-?user (?:ip|net|range)
    \bdul\b
""")
UNWANTED = (
    r"(?:invalid|unknown|unwanted|bad|non-? ?exist\w*|undeliverable|unsolicited|failed"
    r"|wrong"
    r"|incorrect|rejected)"
)
COUNTED = r"(?:recipients|requests|addresses|messages|mails?|e-?mails?|rcpts?|users)"
ERRORS_FROM_CLIENT = r"too many (?:\w+ )?(?:errors|commands) (?:from|by) (?:your|this|xipx)"
RATE_WORDS = phrases(rf"""
    (?:max\w*|number|count|limit|percent\w*|threshold|amount)[^.;]{{0,24}} {UNWANTED} {COUNTED}\b
    \b{UNWANTED} {COUNTED} (?:limit|count|rate|threshold|quota)
    \b{TOO_MANY}\b[^.;]{{0,40}}\b(?:{FOREIGN_UNKNOWN}|tentativ|intentos)  {UNSPACED_TOO_MANY}
    recipients? exceed\w*  unusual (?:rate|volume|amount)  too many {UNWANTED}\b  sent to too many
    too much mail(?! data| on)  ratelimit
    too many {COUNTED}\b[^.;]{{0,40}}(?:from|hour|minute|second|\bday|your|xipx|this (?:ip|host))
    frequency limit  throttl
    \brate\b[^.;]{{0,24}}(?:limit\w*|exceeded|control)
    exceed\w*[^.;]{{0,40}}\b(?:rate|permitted limits|volume)
    excessive (?:rate|volume|number|{UNWANTED}\b)
    unexpected volume  user complaints  permanently deferred
    \byou (?:have |are )?sen[dt](?:ing)? too (?:many|much|fast)
    \b(?:connect|send|try)ing too (?:fast|often|frequently)
    too (?:many|much) (?:fail\w* )?auth\w*  {ERRORS_FROM_CLIENT}
    too many (?:failures|attempts)  \bpenalty\b
    dictionary attack  harvest  namespace mining  \[tss?\d+\]  \bs31[45]0\b  \bhl:(?:rep|ipb|ihu)\b
    \bib(?:[01]\d\d|504|607)[a-z]?\b
""")
"""Limits on what a client sends.

They are in words and in the codes of Yahoo, Outlook.com, NetEase and GoDaddy.
"""

CLIENT_REFUSED_WORDS = phrases(rf"""
    {CLIENT}[^.;]{{0,60}}{REFUSED}  {REFUSED}[^.;]{{0,60}}{CLIENT}
    \b(?:messages?|e?-?mail) from \(?xipx
    (?:block(?:ed|ing)|banned|denied|black-?listed|not allowed|refused)[^.;]{{0,30}} xipx
    xipx[^.;]{{0,20}} (?:blocked|banned|denied|refused|(?:is )?not (?:allowed|permitted|welcome|accepted))
    ^(?:sorry,? )?(?:your )?ips?(?: is\b| in\b|:? xipx)
    (?:not|n't) (?:allowed|permitted) to connect\b
    \bip[ -]based  \b(?:bad|black|invalid) ip\b
    \bip has exceeded\b  \bip\b[^.;]{{0,30}} not (?:in|on)(?= )
    found on (?:a|an|our|one of)
    \byou(?: a|')re (?:banned|black-?listed|blocked)(?! by)  \((?:con|dyn|rtr):[a-z]\w\)
    \bip\b[^.;。]{{0,40}}(?:禁止|封禁|屏蔽)
""")
COUNTRY = r"\b(?:country|countries|geo-?\w*|region)\b"
COUNTRY_REFUSED_WORDS = phrases(
    rf"{COUNTRY}[^.;]{{0,60}}{REFUSED}  {REFUSED}[^.;]{{0,40}}{COUNTRY}  not accept[^.;]{{0,40}}{COUNTRY}"
)
ACCESS_REFUSED_WORDS = phrases(r"""
    not accept(?:ing)? (?:connections|mail from (?:you|your|this(?! sender)))  your access
    access (?:from|for) (?:you|your|this)
    connections? (?:will (?:not )?be |(?:is|are|was) (?:not )?|not )?(?:accepted|rejected|denied|blocked|refused)
    no smtp (?:service|access)  spam source
    (?:open|unsecured|insecure) prox  compromised  botnet  infected  zombie  tor exit
""")
SPAM = r"(?:unsolicited|spam\w*|abus\w+)"
ABUSE_WORDS = phrases(rf"""
    (?:{SPAM}|suspicious|malicious)[^;]{{0,80}}(?:{CLIENT}|xipx)
    (?:{CLIENT}|xipx)[^;]{{0,80}}{SPAM}
""")

# --- sender ---------------------------------------------------------------------------------------

RELAY_WORDS = phrases(rf"""
    \brelay  relais  \bretransmiss\w+ (?:nega|nao|proib)  \breencaminhamento (?:nega|nao|proib)
    weiterleitung[^.;]{{0,20}} nicht  rcpthosts  gateway for
    non-accepted domain  not a (?:local|hosted) domain
    \bdomain (?:or user )?(?:is ?n[o']t|is not|not) (?:hosted|local|served|handled|accepted|allowed|in my|here)
    \b(?:do|does)(?: not|n't|nt) (?:accept|handle|host|serve|process)[^.;]{{0,20}} domain
    \b(?:do|does)(?: not|n't|nt) (?:handle|host|serve|process) (?:e-?)?mail (?:for|of|to)\b
    not a gateway
    \bnot hosted (?:here|on)  \b(?:do|does)(?: not|n't) provide (?:e-?)?mail
    \bnot our mx\b  \b(?:that|this|the|your) domain (?:or user )?isn't in
    {join_column("not_served")}
""")
CERTIFIED_MAIL_WORDS = phrases(r"""
    \bnon[- ]certificat\w+  \bnot certified
    \b(?:posta|e-?mail|messaggi\w*)(?: \w+)? (?:ordinari|convenzional)\w+
    \bsol[oaei]\b[^.;]{0,50}\b(?:pec|certifica[td]\w+)
    \b(?:soltanto|esclusivamente)[^.;]{0,50}\b(?:pec|certificat\w+)
    \b(?:non?|not)[- ](?:da |an? )?pec\b  \bcertified (?:e-?)?mail\b[^.;]{0,20} only  \bpec only
    \bonly[^.;]{0,20} (?:pec|certified (?:e-?)?mail|de-mail)\b
    \bde-mail\b  \bordinary (?:e-?)?mail\b  \bregular e?-?mail not accepted
""")
"""The mailbox accepts certified mail only (Italian PEC, German De-Mail)."""
SENDER_WORDS = phrases(r"""
    \bsender  mail ?from\b  badmailfrom  from:? ?(?:address|domain)
    return[- ]?path  reverse[- ]?path  originator
    envelope[- ]from
    exp[e?]diteur  [e?]metteur  envoyeur  remitente  mittente
    absender  remetente  \bbatv  backscatter
    dns mx or a/aaaa
""")
"""Any word for the sender; the last one is GMX's text for a sender's domain without records."""
UNWANTED_MESSAGE_WORDS = phrases(r"""
    rejected by (?:the |this )?(?:recipient|user)s?
    \b(?:user|recipient)s? re(?:ject|fuse)\w* (?:the|this|your)\b
    \bonly (?:registered|authori[sz]ed|known) (?:users|senders|people)
    \bunwanted\b  \bnot welcome\b
    \bcompl(?:y|ies)\b  \bhtml\b  \burls?\b  \bdt:spm\b
""")
"""The message is refused for what it is or holds."""
