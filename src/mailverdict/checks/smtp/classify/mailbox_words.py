"""The words for a mailbox: its names, and what is said of it.

The words of all languages come from the table of languages. Rules use the patterns named
``..._WORDS``; the others are parts of them. All are for the masked text. `patterns` explains the
marks that stand for the words of many languages.
"""

from __future__ import annotations

from .languages import is_spaced, load_languages
from .patterns import join_column, mark_words, phrases

# --- names ----------------------------------------------------------------------------------------

MAILBOX = phrases("  ".join(load_languages()["English"]["nouns"]))
ANY_MAILBOX = join_column("nouns")
# Things that a user, an account or an address has; not words that are usual local parts, as
# "billing".
THING_OF_ACCOUNT = phrases(r"""
    attribute  balance  bucket  context  cookie  count(?:er)?
    dictionary  encoding  endpoint  extension
    feature  filter  flag  handle  hash  identity  instance
    invitation  label  language  layout  level  limit
    locale  location  mapping  membership  mode  module
    number(?!:? ?[#\d])  option  preference  prefix
    priorit(?:y|ie)  privilege  protocol  range  rating  region
    registry  relation  reservation  role  scope
    score  secret  segment  setting  signature  slot  snapshot
    stage  statistic  storage  stream  suffix
    template  tenant  thread  time ?zone  token  topic  trigger
    upload  usage  value  variable  version  volume
    voucher  window  workflow  workspace  zone
""")
OTHER_NOUN = phrases(rf"""
    {THING_OF_ACCOUNT}s?
    domain  host  server  dns  mx  sender  client  ip  relay
    helo  ehlo  dominio  domaine  file  route  record  key
    certificate  list  policy  transport  service  error  lookup
    database  rule  connection  channel  session  command
    message  may  might  verification  directory  quota  home
    mail system  provider  smtp  pop3?  imap  access  group
    agent  family  store  class  type  process
    empfang  path  folder  phone  device  tag  index  replica  backend  node
    licen[cs]e  subscription  plan  manager  expan\w+  ticket  project  fax  ftp  sms  sql  ldap
""")
# "No such own-host mailbox": words before the noun, but no other noun and nothing that begins
# another phrase.
ADJECTIVES = rf"(?:(?!(?:{OTHER_NOUN}|in|on|of|for|to|or|and|at|by|with)\b)[\w-]+ ){{0,2}}?"
# A thing of the user: "Каталог пользователя не найден", "recipient's calendar not found".
THING_OF_USER = mark_words(r"""
    calendar  profile  certificate  key  format(?!ted\b)\w*  syntax\w*
    (?<!im )(?<!-)(?:home-?)?verzeichnis  ordner  datei
    schl(?:ue|ü)ssel  zertifikat  kalender  (?:\w+)?profil  archiv
    (?<!le )(?<!dans )r[ée]pertoire  dossier  fichier  cl[ée]  certificat  calendrier  abonnement
    (?<!el )directorio  carpeta  archivo  certificado  calendario  perfil  suscripci[óo]n
    (?<!no )diret[óo]rio  pasta  arquivo  chave  assinatura
    cartella  chiave  certificato  profilo  abbonamento
    bestand  sleutel  certificaat  profiel  mapp  fil  nyckel  n[øo]gle  n[øo]kkel
    каталог  папка  файл  ключ  сертификат  календарь  профиль
    подписка  тека  сертифікат  профіль  підписка
    katalog  plik  klucz  certyfikat  subskrypcja
    (?:domovsk[ýy] )?adres[áa][řr]  slo[žz]ka  soubor  kl[íi][čc]
    certifik[áa]t  p[řr][íi]znak  mapa  klju[čc]  k[öo]nyvt[áa]r
    mappa  kulcs  dizini  klas[öo]r[üu]  sertifikas[iı]
""")
UNSPACED_THING = mark_words("""
    目录  目錄  配额  配額  证书  證書  文件  ディレクトリ  フォルダ  証明書  ファイル  디렉터리  폴더  인증서  파일
""")
IN_WORD = r"\.(?=\w)"  # "user ada.lovelace unknown"
# After a colon or an address another noun may begin: "<x@example.org>: project not found". So only
# these words follow.
FILLER = phrases(r"""
    sorry  the  an?  this  that  is  was  are  has  been  here
    permanently  ist  wurde  war  konnte  est  a ete  es
    fue  ha sido  e'?  foi  ar  var  er  ble  blev  on  je
    byl[ao]?  bol[ao]?  jest  zosta[lł][ao]?  был[ао]?
""")
NAME = r"['\"(]?[\w-]{0,64}[._\d'\"][\w.'\")-]{0,64}"  # "User: ada.lovelace not found"
FILLERS = rf"(?:{FILLER}\b[ ,]*)*"
# Between noun and predicate: a few words, but no other noun to which the predicate may belong, and
# no "may".
GAP = (
    rf"(?:(?!\b(?:{OTHER_NOUN}|{THING_OF_USER}|{join_column('domain')}|{join_column('error')})\b)"
    rf"(?:[^.;!?:]|{IN_WORD})){{0,64}}?"
    rf"(?: ?: ?(?:{NAME} )?{FILLERS})?"
)
# "The domain of the recipient was not found": the noun that the predicate is said of stands before
# "of".
OF = ("of", "for", "to", "de", "del", "du", "do", "des", "della", "dello", "al", "de la", "da")
WITH_ARTICLE = ("of the", "for the", "to the", "of this", "for this")
NOT_OF = "".join(
    rf"(?<! {word})" for word in ("dell'", "de l'", *(f"{word} " for word in (*WITH_ARTICLE, *OF)))
)
NOT_SERVER_OF = "".join(
    rf"(?<!{noun} {of} )" for noun in ("server", "host", "domain", "route") for of in ("for", "of")
)
# "The user's script does not exist": something of the user, unless it is the mailbox.
POSSESSIVE = rf"'s? (?!(?:[\w-]+ ){{0,2}}{MAILBOX}\b)"
SUBJECT = (
    rf"\b(?:{NOT_OF}(?!xaddrx){ANY_MAILBOX}\b(?!{POSSESSIVE}){GAP}"
    rf"|{NOT_SERVER_OF}xaddrx\b\W{{0,4}}{FILLERS})"
)
# An adjective before another noun is not about the mailbox: "<x@example.org>: invalid argument".
NEXT_NOUN = phrases(rf"""
    {join_column("error")}
    error  command  argument  parameter  host  domain  helo
    ehlo  syntax  reason  option  sender  client  failure
    response  data  character  format  reverse  protocol  server
    network  certificate  request  sequence  message
    content  header  mx  dns  ip  relay  source  service
    encoding  tls  session  list  group  address in  top-level
    tld  smtp  mailer  code  status  rule
    agent  state\b  space  token  klient\b  клиент\b  клієнт\b  in (?:the )?\w+:? header
    address literal  attachment  structure  mailing list  mime  count
""")
# "found to be full"
NOT_TO_BE = r"(?! (?:to (?:be|have|accept|allow|support)|acceptable|accessible|safe|sufficient)\b)"
END_OF_PHRASE = rf"\b{NOT_TO_BE}(?!['\"]? (?:(?:{MAILBOX}|mail|route) )?{NEXT_NOUN})"


def say_of_mailbox(predicate: str) -> str:
    """A pattern of a mailbox and what is said of it.

    The predicate is searched first, since most texts have none.
    """
    return rf"^(?=.*?\b{predicate}).*?{SUBJECT}\b{predicate}{END_OF_PHRASE}"


# --- unknown --------------------------------------------------------------------------------------

UNKNOWN_PREDICATE = join_column("unknown")
CLOSED_PREDICATE = join_column("closed")
# Without blanks between words there are no ends of words to find, and no other noun in between.
CLOSE_TO = "[^.;,。、,]{0,40}?"  # in Korean a syllable is two or three characters
UNSPACED_MAILBOX = join_column("nouns", spaced=False)
UNSPACED_UNKNOWN = (
    rf"(?>{join_column('unknown', spaced=False)})"
    rf"(?! ?(?:的|な|の|은|는)? ?{join_column('error', spaced=False)})"
)
UNSPACED_CLOSED = join_column("closed", spaced=False)

QUALIFIER = phrases(r"""
    such  valid  known  registered  local
    active  existing  e-?mail  mail  matching  more  longer an?  destination  rcpt to
    current  pop3?  virtual  final delivery  recogni[sz]ed  system  deliverable
""")
QUALIFIERS = f"(?:{QUALIFIER} )*"  # "no such local mailbox"
UNKNOWN = r"(?:unk?n?know?n?|unkn?own?|unknonw|unknwon|uknown)"  # with the misspellings of servers
INVALID = phrases(rf"""
    {UNKNOWN}  unrecogni[sz]ed  unregistered  unresolvable
    unassigned  bogus  obsolete  inva(?:li|il)d  bad
    undefined  unidentified  unallocated  unlisted  defunct
    mis-?spelled  mistyped  non-?deliverable
    (?:non[- ]?|in|un)exist(?:ent|ing|ant)  unroute?able  undeliverable
    illegal  wrong
    incorrect
""")
DIRECTORY = r"(?:directory|address book|name|list|map|database|table|ldap|passwd)"
THE = r"(?:the |an? |any |that |this |your )?"
OWN_TABLE = (
    r"(?:(?:this|our|the) (?:domain|organi\w+|company|directory|database|table|list)|local|virtual)"
)
# "No such mailbox server", "invalid recipient count": another noun follows, which the sentence is
# about.
NOT_COMPOUND = (
    r"(?! (?:agent|client|count|credential|domain|error|exchanger|family|field|folder|format|group"
    r"|header|host|list|manager|network|number|space|range|block|password|polic(?:y|ie)|problem"
    r"|provider|response|route|script|server"
    rf"|session|state|status|store|syntax|system|tag|type|{THING_OF_ACCOUNT})s?\b)"
)
OTHER_USE = (
    rf"{NOT_COMPOUND}"
    r"(?! names? or password| format| characters?| literal| family| type| agent| manager"
    rf"| in (?!{OWN_TABLE}\b)|(?: to)?(?: address)? provided\b)"
)
# "UserNotFound", "mailbox-not-found", "NoSuchRecipient"
THING = "(?:user|recipient|mailbox|address|account|rcpt)"
ONE_WORD = (
    rf"(?:{THING}-?(?:unknown|not-?(?:found|known))|(?:no-?such|unknown|invalid)-?{THING}"
    rf"|{THING}doesnotexist|nouser)"
)
# "No recipient" alone: none was given.
NO_RECIPIENT = (
    r"recipient(?! (?:activity|here|by|with|found|exist|named|match|known|like|[aoi]n? th|under))"
)
# "No mailboxes are hosted here", "no account for this domain": the server is not the one of the
# domain.
MANY = (
    r"(?:users|mailboxes|accounts|addresses|customers)"
    r"(?! (?:here )?(?:by|with|named|matching|like|found)\b)"
)
NOT_NONE = rf"(?!(?:valid )?recipients\b|more users\b|{NO_RECIPIENT}|{MANY})"
NOT_OF_DOMAIN = r"(?! (?:for|in|on) (?:this |the |that |your )?domain\b)"
NOT_GIVEN = r"(?!(?: \w+)? (?:given|specified|provided)| (?:have|has|were|manager))"
NONE_GIVEN = (
    r"(?! (?:valide? )?(?:specifie|fourni|indique"
    r"|(?:specificat|indicat|especificad|indicad|informad)[oa])e?s?\b)"
)
ENTRY = r"(?:records?|match(?:es)?|results?|data|mapping|entry|forwarding rule)"
CANNOT = r"(?:can'?t|can ?not|could ?n[o']t|did ?n[o']t|unable to|not able to|failed to)"
EMAIL_UNKNOWN = (
    r"(?:not (?:found|exist\w*|registered|activated|known)|does ?n[o']t exist|unknown"
    r"|no longer (?:used|in use|valid|exist\w*|active))"
)
START = r"^(?:xaddrx: recipient address rejected: )?(?:sorry,? )?"
NO_SUCH_MAILBOX = phrases(rf"""
    \bno {NOT_NONE}{QUALIFIERS}{MAILBOX}\b{NOT_COMPOUND}{NOT_GIVEN}{NOT_OF_DOMAIN}
    \b[ns]o such (?:one|name|id|e-?mail|{ADJECTIVES}{MAILBOX})\b{NOT_COMPOUND}
    \be-?mail (?:is |was )?{EMAIL_UNKNOWN}\b
    \b(?:not|isn't) (?:a|an|any|one of our|our|my) {QUALIFIERS}{MAILBOX}\b(?! for | to | of (?:this|the) list)
    \bnot (?:an? )?{MAILBOX} (?:here|(?:of|at|on) (?:this|the|our)\b(?! (?:mailing )?list))
    \bnot (?:a )?member of (?:this |the |our )?domain  \bnot have an? final e-?mail delivery point
    (?<!\b\d )(?<!\b\d\d )\b{INVALID}(?: or \w+)?[- ]{QUALIFIERS}(?:destination )?(?!xaddrx){MAILBOX}\b{OTHER_USE}
    (?:^|: |[.,] )(?:sorry,? )?{INVALID} xaddrx
    \bunavailable (?:mail )?(?:user|account|recipient|mailbox)\b
    \bnot found {QUALIFIERS}(?!xaddrx){MAILBOX}\b
    \b(?:does|do)(?: not|n't) have (?:a|an|any)(?: \S+){{0,3}}? {MAILBOX}\b{NOT_OF_DOMAIN}
    \b(?:does|do)(?: not|n't) have {MAILBOX}$  \b{MAILBOX} without (?:an? )?{MAILBOX}$
    \b(?:recipient|user)(?:-user)? must exist\b
    \b(?:do|does)(?: not|n't) exists? (?:that|this|the|such) {MAILBOX}
    \bcan(?:'t|not| not) accept user\b
    \b(?:nobody|no[- ]?one|no person) (?:here|by (?:that|the) name|at this|with (?:that|this))
    \buser missing home directory\b  \bvalid notes mail file\b  ^(?:unknown|not found): xaddrx$
    (?:does|did|do)(?: not|n't) match any {QUALIFIERS}{MAILBOX}\b
    \bno longer ha(?:s|ve) (?:an?|any) {QUALIFIERS}{MAILBOX}\b
    \b(?:no|zero) {ENTRY}(?: found)? (?:of|for) {THE}{QUALIFIERS}{MAILBOX}\b
    \bdo(?: not|n't) know (?:any(?:one|body) |(?:that |this |the |any )?{QUALIFIERS}{MAILBOX}\b)
    \bnot (?:listed |found |present )?in (?:the |our )?(?:(?:public|domino|recipient|user|address)s? )*{DIRECTORY}\b
    \b{CANNOT} (?:find|locate) {THE}{QUALIFIERS}{MAILBOX}\b(?! server)
    {START}(?:(?:does not|doesn't) exist|not known (?:(?:at|on) this|here)|no longer (?:in use|valid))\b
    {START}no longer (?:employed|on staff|using this|(?:an?|our) {MAILBOX})\b
    {START}no longer (?:available )?at this (?:address|company)\b
    (?:not|n't) in (?:my|our|the) list of allowed recipients  \brecipient not in route list\b
    (?:not|n't) (?:in|on) (?:my|our|the) (?:local list|list of (?:valid|known|local) {MAILBOX})
    \bno (?:entry|match)[^.;]{{0,24}} in (?:the |our )?(?:(?!wrong\b)\w+ )?(?:directory|address book)\b
    \bmailbox (?:is )?(?:missing|absent)$  \b(?:unknown|non-?existent) e-?mail$
    {START}(?:former|ex-?) ?(?:employee|student)\b
    \bno redirect entry for this address  ^xaddrx not used\b
    \bnever been an? {MAILBOX}\b  \bdo(?: not|n't) have any(?:one|body) (?:by|with)
    ^(?!{OTHER_NOUN}|x(?:host|ip)x|you\b)[\w-]+ (?:is )?not known here\b
    \b{ONE_WORD}\b  \bcuda nsu\b  ^(?:sorry,? )?unknown (?:to us|here|at this (?:address|site))\b
    \bno longer (?:with|employed (?:at|by|with)|works? (?:at|for)) (?:the|this|our) (?:company|organi[sz]ation|firm)
    \b(?:no longer|does ?n[o']t) (?:work|live|sleep)s? (?:here|for us|with us)\b
    \buser path no exist
    \buser hasn't got the service
    \b(?:resolver\.adr\.)?\w*recip(?:ient)?notfound
    {join_column("absent")}  {join_column("absent", spaced=False)}
    \b{join_column("none")}(?:[ ']{join_column("articles")})?[ ']?{ANY_MAILBOX}\b(?! (?:ip|store|manager)\b){NONE_GIVEN}
    \b{join_column("before")} {QUALIFIERS}{ANY_MAILBOX}\b{NOT_COMPOUND}(?! {join_column("error")}\b)
    {join_column("before", spaced=False)} ?{UNSPACED_MAILBOX}
""")
MAILBOX_UNKNOWN_WORDS = phrases(rf"""
    {NO_SUCH_MAILBOX}
    {say_of_mailbox(rf"(?<!stat[eu] )(?<!status )(?<!status is ){UNKNOWN_PREDICATE}")}
    {UNSPACED_MAILBOX}{CLOSE_TO}{UNSPACED_UNKNOWN}
""")
"""The mailbox does not exist."""

# --- closed ---------------------------------------------------------------------------------------

# "The recipient closed the connection": what the user did, not what became of the mailbox.
NO_OBJECT = (
    rf"(?! (?:this|that|these|those|all) (?!(?:\w+ )?{MAILBOX}\b))"
    r"(?! (?:your?|the(?! service)|his|her|their|its"
    r"|notification|forwarding|connection|external|delivery)s?\b)"
    r"(?! (?:receiving|l'|la|le|les|el|los|il|lo|prijem|przyjmowanie)\b)"
    r"(?! for (?:incoming|maintenance)\b)"
    r"(?! from (?:\S+ ){0,2}(?:group|list|table)s?\b)"  # "recipient removed from the mailing list"
)
MAILBOX_CLOSED_WORDS = phrases(rf"""
    {say_of_mailbox(f"(?<!not )(?<!not be ){CLOSED_PREDICATE}")}{NO_OBJECT}
    {UNSPACED_MAILBOX}{CLOSE_TO}{UNSPACED_CLOSED}
    {UNSPACED_CLOSED} ?{UNSPACED_MAILBOX}  \bnow disabled with\b  \bdisableduser\b
    \bnot (?:currently )?being accepted for this mailbox
    \baccount (?:is )?unavailable\b  \bmail receiving disabled
    ^(?:xaddrx:? )?(?:is )?inactive (?:on|at)\b
    \b{MAILBOX} (?:never|hasn't|has not) (?:logged|entered)(?! in yet)
    \b{MAILBOX} does(?: not|n't) receive (?:any )?(?:e-?)?mail(?: here)?$
    \b(?:inactive|disabled|suspended|expired|closed|deleted|deactivated|archived) {QUALIFIERS}(?!xaddrx){MAILBOX}\b
    \b(?:cancell?ed|dead|dormant|obsolete|abandoned|terminated) {QUALIFIERS}(?!xaddrx){MAILBOX}\b
    ^(?:xaddrx:? )?(?:is )?(?:disabled|deactivated|suspended|deleted|removed|expired) due to (?:extended )?inactivity
""")
"""The mailbox existed and was closed."""

# --- unknown or closed ----------------------------------------------------------------------------


NONE_SUCH = f"{join_column('none')}|{join_column('before')}"


def alternatives() -> str:
    """Patterns of an unknown mailbox as one of two alternatives.

    The other alternative is not "unknown".
    """
    patterns = [
        rf"\b{UNKNOWN_PREDICATE} ?/ ?+(?!(?:(?:\S+ ){{0,4}}?{UNKNOWN_PREDICATE}|no|{NONE_SUCH})\b)",
        rf"\b(?:no such|{INVALID}) {QUALIFIERS}{MAILBOX} or\b"
        rf"(?! (?:\S+ ){{0,3}}?(?:{MAILBOX}|{UNKNOWN_PREDICATE})\b)",
    ]
    for language in load_languages().values():
        unknown, either = (mark_words("  ".join(language[tag])) for tag in ("unknown", "either"))
        if is_spaced(language):
            patterns.append(rf"\b{unknown}\W{{1,3}}{either}\b(?! (?:\S+ ){{0,4}}?{unknown}\b)")
            before = rf"\b(?:{unknown}|no such)\b[^.;]*\b{either}\b"
            patterns.append(
                rf"^(?=.*\w(?<!xaddrx),? {either} (?:\S+ ){{0,2}}?{unknown}\b)(?!.*{before})"
            )
        else:
            patterns.append(rf"{unknown}{CLOSE_TO}{either}")
    return mark_words("  ".join(patterns))


LOCKED = r"(?:blocked|locked|bloquee?|bloquead[oa]|bloccat[oa]|gesperrt)"
EITHER = rf"(?:\b{join_column('either')}\b|{join_column('either', spaced=False)})"
MILDER = rf"(?:\b{CLOSED_PREDICATE}|\b{LOCKED}|\b{join_column('unable')}|{UNSPACED_CLOSED})"
MAILBOX_EITHER_WORDS = (
    rf"^(?=.*?(?:{EITHER}|\w ?/ ?\w))(?:.*?{alternatives()}"
    rf"|(?=.*?(?:{EITHER}[^.;]{{0,40}}{MILDER}|{MILDER}[^.;]{{0,40}}{EITHER}))"
    rf"(?=.*?(?:{NO_SUCH_MAILBOX}|\b{UNKNOWN_PREDICATE}|{UNSPACED_UNKNOWN})))"
)
"""Unknown or something milder, for example closed or not able to receive: not established which."""

# --- full -----------------------------------------------------------------------------------------

STORAGE = (
    r"(?:mail ?box|in-?box|account|storage|folder|mail ?folder|maildir|user|recipient"
    r"|mail ?drop|xaddrx)"
)
OWNER = r"(?:mailbox|user|account|recipient)"
ROOM = r"(?:(?:mail|mailbox|disk|storage)? ?(?:space|quota|room)|storage)"
FULL = join_column("full")
MAILBOX_FULL_WORDS = phrases(rf"""
    over[- ]?quot[ae]  quota is over  mail ?box limit exc?e+ded  \b{OWNER} has not enough
    over (?:\w+ ){{1,2}}quota
    \b{OWNER}\b[^.;]{{0,24}} over (?:its |his |her |their )?(?:disk|storage|mail(?:box)?) (?:limit|allocation|space)
    (?:user|domain) ?disk quota
    mailbox (?:size|storage) limit
    mailbox (?:size|storage)\b[^.;]{{0,24}} exceed  \bfull (?:mail ?box|in-?box)
    \bquota[^.;]{{0,30}}\b(?:exceed|exced|full|reached|not sufficient|violat|depass|superat|uberschritten)
    exceed\w*[^.;]{{0,40}}\b(?:quota|storage|allocation|mailbox size|disk)  disk ?space quota
    \b{STORAGE}\b[^.;]{{0,40}}\b(?:is |are )?(?:too )?full\b
    (?:mail ?box|in-?box)[^.;]{{0,30}} (?:over|exceed\w*)[^.;]{{0,20}}limit
    \b(?:{STORAGE}|xaddrx) (?:storage |size )+limit  mail file size exceeds
    \bstorage limit (?:of|for) (?:the |this |your )?{STORAGE}\b
    exceeds? the (?:remaining|free|available) (?:space|room) \w+ (?:the |this )?{STORAGE}\b
    \b{STORAGE}\b(?: \w+)? exceeds (?:the |its )?allowed (?:size|message count)
    \b{OWNER} has exceeded$
    \b(?:exhausted|overdrawn|used up)\b[^.;]{{0,30}}\b{ROOM}\b
    \b{ROOM} (?:(?:of|for) (?:the |this )?{OWNER} )?(?:has (?:been )?|is |was )?(?:exhausted|used up|full)
    \b(?:storage|mail ?box|mail) ?space (?:is )?not enough  \bquota[^.;]{{0,20}}hard limit
    reached (?:its |his |her |the |their )?(?:disk |storage |mailbox )?quota
    too (?:many messages|much (?:e-?)?mail) (?:on|in) (?:the |this |his |her |their )?(?:server|mail ?box)
    \b{STORAGE}\b[^.;]{{0,30}} maximum number of messages  \btoo much mail data\b
    \boverfull\b  no more (?:space|room)\b  at (?:its |their |his |the )?(?:quota|limit|capacity)\b
    \b(?:storage|quota|capacity|mail ?box)(?: size)?(?: limit)? (?:has been |was |is )?reached
    reached (?:its |the |his |their )?(?:storage|mailbox|maximum|size) (?:limit|size|capacity)
    (?:exceed\w* (?:the |its )?)?\b{STORAGE} capacity(?: (?:is |has been )?exceeded)?
    out of (?:storage|space|(?:disk )?quota|disk space|mailbox space)
    \b{STORAGE} is stuffed  \b(?:alias|e-?mail) full
    \b{STORAGE}\b[^.;]{{0,20}} exhausted (?:its |the )?allowed
    (?:not |un)able to receive (?:any )?more (?:e-?)?mail
    (?:insufficient|not enough|no) {OWNER}? ?(?:storage|space|quota|room)[^.;]{{0,30}}(?:{OWNER}|left)
    (?:not|n't) (?:have )?enough (?:mail |mailbox |storage |free )?(?:space|room|storage)
    insufficient {OWNER}
    ^(?=.*?\b{FULL}\b).*?\b{ANY_MAILBOX}\b{GAP}\b{FULL}\b
    {UNSPACED_MAILBOX}{CLOSE_TO}{join_column("full", spaced=False)}
    {join_column("exhausted")}
""")
"""The mailbox exists and accepts no more mail."""

# --- something of the user ------------------------------------------------------------------------

NO_THING = (
    rf"(?!(?:{MAILBOX}|{ENTRY}|name|id|destination|deliver\w*|mail|message|location|address)\b)"
)
OF_USER = rf"(?:of|for) (?:the |this |that )?{MAILBOX}\b"
POSSESSION_WORDS = (
    rf"\b{MAILBOX}{POSSESSIVE}"
    rf"|(?:^|\b(?:the|an?|unknown|invalid|no such) ){NO_THING}[\w-]+ {OF_USER}"
    rf"|\b{NO_THING}[\w-]+ (?:is |was )?"
    rf"(?:not found|not valid|unknown|invalid|does(?: not|n't) exist) {OF_USER}"
    rf"|\b{MAILBOX} {THING_OF_ACCOUNT}s?\b"
    r"|\bby (?:the|this|its) (?:user|recipient|owner)\b"
)
"""Something of the user that is not the mailbox."""
# "The user disabled notifications": a verb with an object, which is not the mailbox.
NO_VERB_OBJECT = phrases(rf"""
    by  on  in  at  due  because  since  for  from  and  or
    please  as  here  after  before  until  to  via  over  with
    per  permanently  recently  long  now  out  off  {MAILBOX}
    (?:his|her|their|its|the|this) (?:\w+ )?{MAILBOX}
""")
ACTION_OF_USER = (
    r"\b(?:user|recipient|subscriber|customer|owner)(?: has)?"
    r" (?:closed|disabled|deleted|removed|cancell?ed"
    r"|archived|suspended|deactivated|revoked|terminated)"
    rf" (?!{NO_VERB_OBJECT}\b)[a-z]"
)

FORWARDING = mark_words(r"""
    weiterleitung\w*  redirection  r[ée]exp[ée]dition
    reenv[íi]o  redirec[cç][cçií]\w+  inoltro  reencaminha\w+
    doorstuur\w*  переадрес\w+  пересыл\w+  przekierowa\w+
    p[řr]esm[ěe]rov\w+  [áa]tir[áa]ny\w+  y[öo]nlendirme
    转发  轉發  (?<!又は)転送先  전달
""")
FORWARD_WORDS = (
    FORWARDING
    + r"|(?<!no )\b(?:forward|redirect)(?:ing|ion|ed|s)?(?: (?:address|target|file|rule|to\b)|:)"
    r"|\bafter (?:being )?(?:forward|redirect)|xaddrx ?[-=]+> ?xaddrx"
    r"|\balias (?:loop|target)|\balias\b[^.;]{0,24} (?:targets?|points|resolves)\b|\bexpands\b"
    r"|\bnext hop\b"
)
"""The mailbox forwards to another address: what is unknown may be that one."""

THING_OF_USER_WORDS = (
    rf"{ACTION_OF_USER}|\b{THING_OF_USER} (?:\S+ ){{0,2}}?(?:[ld]'|dell')?{ANY_MAILBOX}\b"
    rf"|{UNSPACED_MAILBOX} ?[的の의]? ?{UNSPACED_THING}(?!に)"
)
"""What is unknown may be a folder, key or profile of the user."""

# --- refused --------------------------------------------------------------------------------------

# The text beside which the code decides is nothing but a refusal of the recipient, or names the
# mailbox in English; in other languages an unread verb may say that the recipient refuses the
# message.
REFUSAL_ALONE = phrases(r"""
    sorry  rejected  refused  fail(?:ed|ure)  permanent(?:ly)?
    fatal  delivery  delivered  undeliverable  bad
    destination  invalid  wrong  incorrect  unknown  known
    found  exists?  valid  here  such  requested  action  taken
    smtp  error  status  code  no  not  is  was  be  been  has
    does  do  could  cannot  can't  or  to  at  by  of  the
    an?  this  that  one  recipient  address  x\w+x  \w*\d\w*  [\w-]+(?:\.[\w-]+)+
    d[eu]s?  de la  el  l[aeo]s?  il  l  d  d[eiaor]s?  der  dem  della?  dell  do  da  van  av  af
""")
REFUSED_ELSEWHERE = mark_words(r"""
    abgelehnt  abgewiesen  zur(?:ue|ü)ckgewiesen  rejet[ée]e?
    refus[ée]e?  rechazad[oa]  rebutja\w+  rejeitad[oa]
    recusad[oa]  rifiutat[oa]  respint[oa]  geweigerd  avvisad
    afvist  avvist  hyl[äa]tty  odrzucon\w+  odm[íi]tnut\w*
    odmietnut\w*  zam[íi]tnut\w*  elutas[íi]tva  respins[ăa]?
    odbijen[ao]?  zavrnjen[ao]?  отклон[её]н[ао]?
    отвергнут[ао]?  відхилен[ао]?  отхвърлен[ао]?  одбијен[ао]?
    απορρίφθηκε  reddedildi  مرفوض  נדחתה?  ditolak
""")
UNSPACED_REFUSED = mark_words("""
    被?拒[绝絕]  拒否され(?:ました|た)  거부(?:됨|되었습니다)  ถูกปฏิเสธ  [はがをの的已이가은는]
""")
REFUSAL_ONLY = (
    rf"\W*+(?:\b(?>(?:{REFUSAL_ALONE}|{ANY_MAILBOX}|{FILLER}|{REFUSED_ELSEWHERE})\b)\W*+"
    rf"|(?>{UNSPACED_MAILBOX}|{UNSPACED_REFUSED})\W*+)*+$"
)
POSTFIX_CLASS = r"(?:recipient )?address rejected: ?\w"  # before any text: it names no subject
# "no existe", without a subject.
BARE_UNKNOWN = rf"{FILLERS}(?:{UNKNOWN_PREDICATE}|{UNSPACED_UNKNOWN})\W*$"
RECIPIENT_REFUSED_WORDS = (
    rf"\b(?!xaddrx|{POSTFIX_CLASS}){MAILBOX}\b|^{REFUSAL_ONLY}|^{BARE_UNKNOWN}"
)
"""Nothing but a refusal of the recipient.

Beside it an enhanced code for the mailbox is about the mailbox.
"""

ADDRESS_REFUSED_WORDS = (
    rf"\b(?!{POSTFIX_CLASS})(?:recipient|mailbox|user|account|address(?:ee)?|rcpt)\b"
    rf"|^(?=.*\bxaddrx\b){REFUSAL_ONLY}"
)
"""The text names the mailbox or its address in English and no other subject."""
