"""The words that rules search for, by subject: server, mailbox, domain, client, sender.

The words for a mailbox come from the table of languages. Rules use the patterns named ``..._WORDS`` and ``..._NAMES``;
the others are parts of them. All are for the masked text, unless they say otherwise. Patterns may hold marks in place
of the words of many languages: `compile_pattern` replaces them.
"""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from functools import cache
from typing import Literal, NamedTuple

from .languages import load_languages

__all__ = [
    "ABUSE_WORDS",
    "ACCESS_NETWORK_WORDS",
    "ACCESS_REFUSED_WORDS",
    "ADDRESS_REFUSED_WORDS",
    "BLACKLIST_WORDS",
    "CAPACITY_WORDS",
    "CERTIFIED_MAIL_WORDS",
    "CLIENT",
    "CLIENT_OR_SENDER_WORDS",
    "CLIENT_REFUSED_WORDS",
    "COUNTRY_REFUSED_WORDS",
    "DNS_LIST_NAMES",
    "DOMAIN_LISTED_WORDS",
    "DOMAIN_UNKNOWN_WORDS",
    "DOUBT_WORDS",
    "FOREIGN_MESSAGE_WORDS",
    "FORWARD_WORDS",
    "LOCKED",
    "MAILBOX_CLOSED_WORDS",
    "MAILBOX_EITHER_WORDS",
    "MAILBOX_FULL_WORDS",
    "MAILBOX_UNKNOWN_WORDS",
    "OFFLINE_WORDS",
    "OTHER_SUBJECT_WORDS",
    "RATE_WORDS",
    "RECIPIENT_REFUSED_WORDS",
    "RELAY_WORDS",
    "RETRY_WORDS",
    "REVERSE_DNS_WORDS",
    "SENDER_WORDS",
    "SERVER_FAILURE_WORDS",
    "TEMPORARY_WORDS",
    "THING_OF_USER_WORDS",
    "ReplyText",
    "compile_pattern",
    "find_letters",
    "fold",
    "fold_letters",
    "phrases",
]


class ReplyText(NamedTuple):
    """A reply's text in the two forms that rules search."""

    unmasked: str  # lower case, without accents, addresses masked; holds names of DNS lists and links
    masked: str  # the same with IP addresses, hosts and links masked, and misleading clauses replaced

    @property
    def statement(self) -> str:
        """The masked text without sentences that only advise the sender."""
        return ADVICE.sub("", self.masked).strip()


APOSTROPHES = str.maketrans("\u2018\u2019\u00b4`", "''''")
# One form for letters that Arabic and Persian keyboards write differently; characters without width are removed.
SAME_LETTERS = APOSTROPHES | str.maketrans("یکى", "يكي", "\u200b\u200c\u200d\u200e\u200f\ufeff\u00ad")


def fold(text: str) -> str:
    """Lower case without accents, with one kind of apostrophe."""
    lower = text.casefold()
    if lower.isascii():  # the usual case; texts rarely repeat, so it pays
        return lower.translate(APOSTROPHES)
    decomposed = unicodedata.normalize("NFKD", undo_mojibake(text).casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).translate(SAME_LETTERS)


def undo_mojibake(text: str) -> str:
    """Undo the reading of UTF-8 as Latin-1 or Windows-1252, which some servers send."""
    for encoding in ("latin-1", "cp1252"):
        with suppress(UnicodeError):
            return text.encode(encoding).decode("utf-8")
    return text


def fold_letters(pattern: str) -> str:
    """Fold the letters of a pattern as `fold` folds those of a text; a Latin letter may also be a question mark.

    Servers that send ASCII only replace other letters by question marks: "Nieznany u?ytkownik".

    >>> fold_letters("u[żz]ytkownik, trouvé")
    'u[z?z]ytkownik, trouv[e?]'
    """
    if pattern.isascii():
        return pattern
    folded, in_class = [], False
    for c in pattern:
        in_class = c == "[" or (in_class and c != "]")
        letter = c if c.isascii() else fold(c)
        if not c.isascii() and len(letter) == 1 and unicodedata.name(c).startswith("LATIN"):
            letter = f"{letter}?" if in_class else f"[{letter}?]"
        folded.append(letter)
    return "".join(folded)


def phrases(text: str) -> str:
    """Join alternatives that are separated by two or more blanks, by initial: a third faster to search.

    >>> phrases("unknown  not known  not found")
    '(?:(?:u(?:nknown)|n(?:ot known|ot found)))'
    """
    by_initial: dict[tuple[str, str], list[str]] = {}
    for phrase in re.split(r"\s{2,}", text.strip()):
        boundary, initial, rest = INITIAL.fullmatch(phrase).groups(default="")  # type: ignore[union-attr]
        by_initial.setdefault((boundary, initial), []).append(rest)
    groups: dict[str, list[str]] = {}
    for (boundary, initial), rests in by_initial.items():
        groups.setdefault(boundary, []).append(f"{initial}(?:{'|'.join(rests)})")
    return "(?:" + "|".join(f"{boundary}(?:{'|'.join(each)})" for boundary, each in groups.items()) + ")"


INITIAL = re.compile(r"(\\b)?([^\W\d_](?![?*+{]))?(.*)", re.DOTALL)


# Most replies are in ASCII, and most words of other languages need other letters. So a pattern holds a mark in place of
# such words, and is compiled twice: for texts in ASCII without the words that need other letters, for others with all.
Letters = Literal["ascii", "any"]
MARK = re.compile("⟦([^⟦⟧]*)⟧")
NEVER = "(?!)"  # found in no text
LETTER_CLASS = re.compile(r"\[[^]]*[a-z][^]]*\]")  # one of its letters is in ASCII


def mark_words(words: str) -> str:
    """Mark alternatives that are separated by two or more blanks; `compile_pattern` joins them."""
    return "⟦" + "¦".join(re.split(r"\s{2,}", words.strip())) + "⟧"


@cache
def compile_pattern(pattern: str, letters: Letters) -> re.Pattern[str]:
    """Compile a pattern for texts of these letters; done when such a text is first searched."""
    while MARK.search(pattern):  # a mark may hold marks
        pattern = MARK.sub(lambda match: join_words(match[1], letters), pattern)
    return re.compile(pattern)


def find_letters(text: str) -> Letters:
    """Find which form of a pattern is searched in a text."""
    return "ascii" if text.isascii() else "any"


@cache
def join_words(words: str, letters: Letters) -> str:
    """Join the words of a mark."""
    folded = [fold_letters(word) for word in words.split("¦")]
    if letters == "ascii":
        folded = [word for word in folded if NEVER not in word and LETTER_CLASS.sub("", word).isascii()]
    return phrases("  ".join(folded)) if folded else NEVER


@cache
def join_column(column: str, *, spaced: bool = True, first: int = 0) -> str:
    """Mark the words of one column of the table of languages."""
    rows = (getattr(language, column) for language in load_languages()[first:] if language.spaced is spaced)
    return mark_words("  ".join(words for words in rows if words))


# --- advice ---------------------------------------------------------------------------------------------------------

ADVICE_START = phrases(r"""
    (?:please|pls|kindly)(?! (?:use|turn|enable|log|configure|send|set|submit))  (?:double-?)?check  verify  make sure
    ensure  if you  for (?:more|further|assistance|help|additional)  contact  see  visit  learn more  dsn  refer  report
    you (?:may|can|should|might)  the sender should  message (?:id|generated)
    veuillez  merci de  verifiez  por favor  verifique  compruebe  revise  bitte  uberpruf\w+  prufen
    si prega  prego  verificare  controll\w+  prosze  sprawdz  пожалуиста  проверьте
""")
REFUSAL = phrases(r"""
    black  block  reject  refus  den(?:y|ied)  \blist(?:ed|ing)  reputation  spamhaus  banned  accept  external
    internal
    not (?:allowed|permitted|authori)  unauthori  prohibit  relay  authenticat  quota  full  \bdns  \bptr  \bspf  dkim
    dmarc  gr[ea]y-?list  too (?:many|much)  limit  throttl  suspend  disabled  \bips?\b  xipx  verif\w+ fail
    certif  \bpec\b  \bonly\b  \blater\b
""")
# "Please check the address": a sentence after the reason. A sentence with a word for a refusal is not advice.
ADVICE = re.compile(
    rf"(?:(?<=[.;!?,)])|\s-+|\(|(?<=\w)(?= please (?:check|verify|contact|make sure|see|visit)\b))"
    rf"\s*(?:sorry,? |so |then )?{ADVICE_START}\b(?:(?!{REFUSAL})[^.;!?])*+(?:[.;!?]+|$)"
)

# --- server ---------------------------------------------------------------------------------------------------------

SERVER_PART = phrases(r"""
    server  internal  local  system  look-?up  database  db  ldap  dns  directory  resolver  alias  disk  memory
    resource  storage  configuration  backend  filters?  software  i/o  file ?system  queue  mail system  map  table
    verification  validation
""")
SERVER_FAILURE = phrases(r"""
    errors?  problems?  fail\w*  trouble  shortage  locked  issues?  unavailable  exhausted  insufficient  full  down
    not available
    timed? ?out  corrupt\w*  crash\w*
""")
SERVER_FAILURE_WORDS = phrases(rf"""
    \b{SERVER_PART}s?\b[^.;]{{0,24}}\b{SERVER_FAILURE}
    insufficient (?:system|disk|memory|resource|storage)\w*  (?:error|problem) in processing  timed? ?out  \bbusy\b
    out of memory  shutting down  maintenance  unable to (?:lookup|look up|verify|connect|contact)
    (?:could|can) ?not (?:be )?(?:connect|contact|complet|verif|load|open|access|sav|stor|resolv)\w*
    unexpected error  domain problem  space shortage
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
    temporar  temporal  temporane  temporair  vor(?:ue|ü)bergehend  tijdelijk  tymczasow  tillf[äa]llig  midlertidig
    ge[çc]ici  do[čc]asn  p[řr]echodn[ěe]\b  momentan  momentán  moment[ée]  moment[áa]ln  provisori?[aos]  provvisori
    (?:por|de) el momento  por (?:ora|agora)  por enquanto  per (?:ora|il momento)  pour (?:l'instant|le moment)
    derzeit  zurzeit  zur zeit  voorlopig  momenteel  f[öo]r tillf[äa]llet  forel[øo]pig  for tiden  chwilowo  czasowo
    v[äa]liaikais  toistaiseksi  ajuti(?:selt|ne)  [īi]slaic[īi]g  uz laiku  laikin  ideiglenes  [áa]tmenetileg
    privremen  za[čc]asn  приврем[ео]н  t[íi]mabundi[ðd]  aldi baterako  sementara  t[ạa]m th[ờo]i
    на время  пока\b  поки\b  временно  тимчасово  уақытша  დროებით  ժամանակավոր  προσωρινά  مؤقت  موقت  זמנית  כרגע
    ชั่วคราว  अस्थायी  暂时  暫時  临时  臨時  暂停  暫停  一時的  一時停止  일시
""")
"""For now: nothing is established."""

DOUBT_WORDS = mark_words(r"""
    ^if (?:the|this|that)\b  \b(?:say|tell|known?|disclose) (?:whether|if)\b
    \bpossibly\b  \bprobably\b  \bperhaps\b  \bmaybe\b  peut-[êe]tre  probablement  quiz[áa]s  tal vez
    posiblemente
    probablemente  \bforse\b  probabilmente  talvez  provavelmente  vielleicht  m(?:oe|ö)glicherweise  wahrscheinlich
    \bmisschien  \bmogelijk  \bwaarschijnlijk  \bkanskje  \bkanske  \bm[åa]ske\b  \bm[öo]jligen  \bmuligvis  \bmuligens
    \behk[äa]\b  mahdollisesti  v[õo]ib-?olla  iesp[ēe]jams  varb[ūu]t  galb[ūu]t  gali b[ūu]ti  by[ćc] mo[żz]e
    prawdopodobnie  (?<!nie )\bmo[žz]n[áo]\b  pravd[ěe]podobn[ěe]  \besetleg  val[óo]sz[íi]n[űu]  \bmo[žz]da\b
    \bmorda\b
    возможно  вероятно  может быть  можливо  можда  \bbelki  muhtemelen  olabilir  \bίσως  πιθαν  ربما  محتمل  אולי
    ייתכן  \be\.g\.,? mailbox  \bbut will (?:accept|attempt|deliver|forward)
    il se peut  \bpuede que  \bpode(?:m)? (?:estar|ficar)  \bpotrebbe  ενδέχεται
    \bmungkin  \bco the\b  có thể  \bco le\b  شاید  ممکن  可能  也许  也許  かもしれ  おそらく  가능성  않을 수 있  อาจ
""")
"""Said of the reason: nothing is established."""

OFFLINE_WORDS = mark_words(r"""
    \boffline\b  hors ligne  sin conexi[óo]n  (?:non|fuori) in linea  автономн  オフライン  离线  離線  脱机  脫機
    오프라인
    quarant[äa]\w+  quar(?:e|en)nt[ai]\w+  cuarentena  quarentena  karantin  карантин  isoliert  検疫  隔离  隔離  격리
""")
"""The mailbox cannot be reached now, or the message is in quarantine: nothing is established."""

# --- mailbox --------------------------------------------------------------------------------------------------------

MAILBOX = phrases(load_languages()[0].nouns)  # in English
ANY_MAILBOX = join_column("nouns")
# Between noun and predicate: a few words, but no other noun to which the predicate may belong, and no "may".
OTHER_NOUN = phrases(r"""
    domain  host  server  dns  mx  sender  client  ip  relay  helo  ehlo  dominio  domaine  file  route  record  key
    certificate  list  policy  transport  service  error  lookup  database  rule  connection  channel  session  command
    message  may  might  verification  directory  quota  home  mail system  provider  smtp  pop3?  imap  access  group
    agent  family  store  class  type  process
    licen[cs]e  subscription  plan  manager  expan\w+  ticket  project
""")
# A thing of the user: "Каталог пользователя не найден", "recipient's calendar not found".
THING_OF_USER = mark_words(r"""
    calendar  profile  certificate  key  format(?!ted\b)\w*  syntax\w*
    (?<!im )(?<!-)(?:home-?)?verzeichnis  ordner  datei  schl(?:ue|ü)ssel  zertifikat  kalender  (?:\w+)?profil  archiv
    (?<!le )(?<!dans )r[ée]pertoire  dossier  fichier  cl[ée]  certificat  calendrier  abonnement
    (?<!el )directorio  carpeta  archivo  certificado  calendario  perfil  suscripci[óo]n
    (?<!no )diret[óo]rio  pasta  arquivo  chave  assinatura  cartella  chiave  certificato  profilo  abbonamento
    bestand  sleutel  certificaat  profiel  mapp  fil  nyckel  n[øo]gle  n[øo]kkel
    каталог  папка  файл  ключ  сертификат  календарь  профиль  подписка  тека  сертифікат  профіль  підписка
    katalog  plik  klucz  certyfikat  subskrypcja  (?:domovsk[ýy] )?adres[áa][řr]  slo[žz]ka  soubor  kl[íi][čc]
    certifik[áa]t  p[řr][íi]znak  mapa  klju[čc]  k[öo]nyvt[áa]r  mappa  kulcs  dizini  klas[öo]r[üu]  sertifikas[iı]
""")
UNSPACED_THING = mark_words("""
    目录  目錄  配额  配額  证书  證書  文件  ディレクトリ  フォルダ  証明書  ファイル  디렉터리  폴더  인증서  파일
""")
IN_WORD = r"\.(?=\w)"  # "user ada.lovelace unknown"
# After a colon or an address another noun may begin: "<x@example.org>: project not found". So only these words follow.
FILLER = phrases(r"""
    sorry  the  an?  this  that  is  was  are  has  been  here  permanently  ist  wurde  war  konnte  est  a ete  es
    fue  ha sido  e'?  foi  ar  var  er  ble  blev  on  je  byl[ao]?  bol[ao]?  jest  zosta[lł][ao]?  был[ао]?
""")
NAME = r"['\"(]?[\w-]{0,64}[._\d'\"][\w.'\")-]{0,64}"  # "User: ada.lovelace not found"
FILLERS = rf"(?:{FILLER}\b[ ,]*)*"
GAP = (
    rf"(?:(?!\b(?:{OTHER_NOUN}|{THING_OF_USER}|{join_column('domain')}|{join_column('error')})\b)(?:[^.;!?:]|{IN_WORD})){{0,64}}?"
    rf"(?: ?: ?(?:{NAME} )?{FILLERS})?"
)
# "The domain of the recipient was not found": the noun that the predicate is said of stands before "of".
OF = ("of", "for", "de", "del", "du", "do", "des", "della", "dello", "al", "de la", "da")
NOT_OF = "".join(
    rf"(?<! {word})"
    for word in ("of the ", "for the ", "of this ", "for this ", "dell'", "de l'", *(f"{word} " for word in OF))
)
NOT_SERVER_OF = "".join(rf"(?<!{noun} {of} )" for noun in ("server", "host", "domain", "route") for of in ("for", "of"))
SUBJECT = rf"\b(?:{NOT_OF}(?!xaddrx){ANY_MAILBOX}\b{GAP}|{NOT_SERVER_OF}xaddrx\b\W{{0,4}}{FILLERS})"
# An adjective before another noun is not about the mailbox: "<x@example.org>: invalid argument".
NEXT_NOUN = phrases(rf"""
    {join_column("error")}
    error  command  argument  parameter  host  domain  helo  ehlo  syntax  reason  option  sender  client  failure
    response  data  character  format  reverse  protocol  server  network  certificate  request  sequence  message
    content  header  mx  dns  ip  relay  source  service  encoding  tls  session  list  group  address in  top-level
    tld  smtp  mailer  code  status
    address literal  attachment  structure  mailing list  mime  count
""")
END_OF_PHRASE = rf"\b(?!['\"]? (?:{MAILBOX} )?{NEXT_NOUN})"


def say_of_mailbox(predicate: str) -> str:
    """A pattern of a mailbox and what is said of it; the predicate is searched first, since most texts have none."""
    return rf"^(?=.*?\b{predicate}).*?{SUBJECT}\b{predicate}{END_OF_PHRASE}"


UNKNOWN_PREDICATE = join_column("unknown")
CLOSED_PREDICATE = join_column("closed")
# Without blanks between words there are no ends of words to find, and no other noun in between.
CLOSE_TO = "[^.;,。、,]{0,40}?"  # in Korean a syllable is two or three characters
UNSPACED_MAILBOX = join_column("nouns", spaced=False)
UNSPACED_UNKNOWN = (
    rf"(?>{join_column('unknown', spaced=False)})(?! ?(?:的|な|の|은|는)? ?{join_column('error', spaced=False)})"
)
UNSPACED_CLOSED = join_column("closed", spaced=False)

QUALIFIER = phrases(r"""
    such  valid  known  local  active  existing  e-?mail  mail  matching  more  longer an?  destination  rcpt to
    current  pop3  virtual  final delivery  recogni[sz]ed  system  deliverable
""")
QUALIFIERS = f"(?:{QUALIFIER} )*"  # "no such local mailbox"
UNKNOWN = r"(?:unk?n?know?n?|unkn?own?|unknonw|unknwon|uknown)"  # with the misspellings of servers
INVALID = phrases(rf"""
    {UNKNOWN}  unrecogni[sz]ed  unregistered  unresolvable  unassigned  bogus  obsolete  inva(?:li|il)d  bad
    undefined  unidentified  unallocated  unlisted  defunct  mis-?spelled  mistyped  non-?deliverable
    (?:non[- ]?|in|un)exist(?:ent|ing|ant)  unroute?able  undeliverable
    illegal  wrong
    incorrect
""")
DIRECTORY = r"(?:directory|address book|name|list|map|database|table|ldap|passwd)"
THE = r"(?:the |an? |any |that |this |your )?"
OWN_TABLE = r"(?:(?:this|our|the) (?:domain|organi\w+|company|directory|database|table|list)|local|virtual)"
# "No such mailbox server", "invalid recipient count": another noun follows, which the sentence is about.
NOT_COMPOUND = (
    r"(?! (?:agent|client|count|credential|domain|exchanger|family|field|format|group|header|host|list|manager|number"
    r"|space|range|block|password|polic(?:y|ie)|provider|response|route|server|session|status|store|type)s?\b)"
)
OTHER_USE = (
    rf"{NOT_COMPOUND}(?! names? or password| format| characters?| literal| family| type| agent| manager"
    rf"| in (?!{OWN_TABLE}\b)|(?: to)?(?: address)? provided\b)"
)
# "UserNotFound", "mailbox-not-found", "NoSuchRecipient"
THING = "(?:user|recipient|mailbox|address|account|rcpt)"
ONE_WORD = rf"(?:{THING}-?(?:unknown|not-?(?:found|known))|(?:no-?such|unknown|invalid)-?{THING}|{THING}doesnotexist)"
# "No recipient" alone: none was given.
NO_RECIPIENT = r"recipient(?! (?:activity|here|by|with|found|exist|named|match|known|like|[aoi]n? th|under))"
# "No mailboxes are hosted here", "no account for this domain": the server is not the one of the domain.
MANY = r"(?:users|mailboxes|accounts|addresses|customers)(?! (?:here )?(?:by|with|named|matching|like|found)\b)"
NOT_NONE = rf"(?!(?:valid )?recipients\b|more users\b|{NO_RECIPIENT}|{MANY})"
NOT_OF_DOMAIN = r"(?! (?:for|in|on) (?:this |the |that |your )?domain\b)"
NOT_GIVEN = r"(?!(?: \w+)? (?:given|specified|provided)| (?:have|has|were|manager))"
NONE_GIVEN = (
    r"(?! (?:valide? )?(?:specifie|fourni|indique|(?:specificat|indicat|especificad|indicad|informad)[oa])e?s?\b)"
)
ENTRY = r"(?:records?|match(?:es)?|results?|data|mapping|entry|forwarding rule)"
CANNOT = r"(?:can'?t|can ?not|could ?n[o']t|did ?n[o']t|unable to|not able to|failed to)"
EMAIL_UNKNOWN = r"(?:not (?:found|exist\w*|registered|activated|known)|does ?n[o']t exist|unknown)"
NO_SUCH_MAILBOX = phrases(rf"""
    \bno {NOT_NONE}{QUALIFIERS}{MAILBOX}\b{NOT_COMPOUND}{NOT_GIVEN}{NOT_OF_DOMAIN}
    \b[ns]o such (?:one|name|id|e-?mail|{MAILBOX})\b{NOT_COMPOUND}
    \be-?mail (?:is |was )?{EMAIL_UNKNOWN}\b
    \b(?:not|isn't) (?:a|an|any|one of our|our|my) {QUALIFIERS}{MAILBOX}\b(?! for | to | of (?:this|the) list)
    \bnot (?:an? )?{MAILBOX} (?:here|(?:of|at|on) (?:this|the|our)\b(?! (?:mailing )?list))
    \bnot (?:a )?member of (?:this |the |our )?domain  \bnot have an? final e-?mail delivery point
    (?<!\b\d )(?<!\b\d\d )\b{INVALID}(?: or \w+)?[- ]{QUALIFIERS}(?:destination )?{MAILBOX}\b{OTHER_USE}
    \bunavailable (?:mail )?(?:user|account|recipient|mailbox)\b  \bnot found {QUALIFIERS}{MAILBOX}\b
    \b(?:does|do)(?: not|n't) have (?:a|an|any)(?: \S+){{0,3}}? {MAILBOX}\b{NOT_OF_DOMAIN}
    \b(?:does|do)(?: not|n't) have {MAILBOX}$  \b{MAILBOX} without (?:an? )?{MAILBOX}$
    \b(?:recipient|user)(?:-user)? must exist\b
    \b(?:do|does)(?: not|n't) exists? (?:that|this|the|such) {MAILBOX}  \bcan(?:'t|not| not) accept user\b
    \b(?:nobody|no[- ]?one|no person) (?:here|by that name|at this|with (?:that|this))
    \buser missing home directory\b  \bvalid notes mail file\b  ^(?:unknown|not found): xaddrx$
    (?:does|did|do)(?: not|n't) match any {QUALIFIERS}{MAILBOX}\b
    \bno longer ha(?:s|ve) (?:an?|any) {QUALIFIERS}{MAILBOX}\b
    \b(?:no|zero) {ENTRY}(?: found)? (?:of|for) {THE}{QUALIFIERS}{MAILBOX}\b
    \bdo(?: not|n't) know (?:any(?:one|body) |(?:that |this |the |any )?{QUALIFIERS}{MAILBOX}\b)
    \bnot (?:listed |found |present )?in (?:the |our )?(?:(?:public|domino|recipient|user|address)s? )*{DIRECTORY}\b
    \b{CANNOT} (?:find|locate) {THE}{QUALIFIERS}{MAILBOX}\b(?! server)
    ^(?:sorry,? )?(?:(?:does not|doesn't) exist|not known (?:(?:at|on) this|here)|no longer (?:in use|valid))\b
    ^(?:sorry,? )?no longer (?:employed|on staff|using this|(?:an?|our) {MAILBOX})\b
    ^(?:sorry,? )?no longer (?:available )?at this (?:address|company)\b
    (?:not|n't) in (?:my|our|the) list of allowed recipients
    (?:not|n't) (?:in|on) (?:my|our|the) (?:local list|list of (?:valid|known|local) {MAILBOX})
    \bno (?:entry|match)[^.;]{{0,24}} in (?:the |our )?(?:directory|address book)\b
    \bmailbox (?:is )?(?:missing|absent)$  \b(?:unknown|non-?existent) e-?mail$
    ^(?:former|ex-?) ?(?:employee|student)\b
    \bno redirect entry for this address  ^xaddrx not used\b
    \bnever been an? {MAILBOX}\b  \bdo(?: not|n't) have any(?:one|body) (?:by|with)
    \b{ONE_WORD}\b  ^(?:sorry,? )?unknown (?:to us|here|at this (?:address|site))\b
    \bno longer (?:with|employed (?:at|by|with)|works? (?:at|for)) (?:the|this|our) (?:company|organi[sz]ation|firm)
    \b(?:no longer|does ?n[o']t) (?:work|live|sleep)s? (?:here|for us|with us)\b  \buser path no exist
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

# "The recipient closed the connection": what the user did, not what became of the mailbox.
NO_OBJECT = r"(?! (?:your?|the(?! service)|his|her|their|its|notification|forwarding|connection|external|delivery)s?\b)"
MAILBOX_CLOSED_WORDS = phrases(rf"""
    {say_of_mailbox(CLOSED_PREDICATE)}{NO_OBJECT}  {UNSPACED_MAILBOX}{CLOSE_TO}{UNSPACED_CLOSED}
    {UNSPACED_CLOSED} ?{UNSPACED_MAILBOX}  \bnow disabled with\b  \bdisableduser\b
    \bnot (?:currently )?being accepted for this mailbox
    \baccount (?:is )?unavailable\b  \bmail receiving disabled  ^(?:xaddrx:? )?(?:is )?inactive (?:on|at)\b
    \b{MAILBOX} (?:never|hasn't|has not) (?:logged|entered)(?! in yet)
    \b{MAILBOX} does(?: not|n't) receive (?:any )?(?:e-?)?mail$
    \b(?:inactive|disabled|suspended|expired|closed|deleted|deactivated|archived) {QUALIFIERS}{MAILBOX}\b
    \b(?:cancell?ed|dead|dormant|obsolete|abandoned|terminated) {QUALIFIERS}{MAILBOX}\b
    due to (?:extended )?inactivity
""")
"""The mailbox existed and was closed."""


def alternatives() -> str:
    """Patterns of an unknown mailbox as one of two alternatives, where the other one is not "unknown"."""
    patterns = [
        rf"\b{UNKNOWN_PREDICATE} ?/ ?(?!(?:(?:\S+ ){{0,3}}?{UNKNOWN_PREDICATE}|no such)\b)",
        rf"\b(?:no such|{INVALID}) {QUALIFIERS}{MAILBOX} or\b(?! (?:\S+ ){{0,3}}?(?:{MAILBOX}|{UNKNOWN_PREDICATE})\b)",
    ]
    for language in load_languages():
        unknown, either = mark_words(language.unknown), mark_words(language.either)
        if language.spaced:
            patterns.append(rf"\b{unknown}\W{{1,3}}{either}\b(?! (?:\S+ ){{0,4}}?{unknown}\b)")
            before = rf"\b(?:{unknown}|no such)\b[^.;]*\b{either}\b"
            patterns.append(rf"^(?=.*\w(?<!xaddrx),? {either} (?:\S+ ){{0,2}}?{unknown}\b)(?!.*{before})")
        else:
            patterns.append(rf"{unknown}{CLOSE_TO}{either}")
    return mark_words("  ".join(patterns))


LOCKED = r"(?:blocked|locked|bloquee?|bloquead[oa]|bloccat[oa]|gesperrt)"
EITHER = rf"(?:\b{join_column('either')}\b|{join_column('either', spaced=False)})"
MILDER = rf"(?:\b{CLOSED_PREDICATE}|\b{LOCKED}|\b{join_column('unable')}|{UNSPACED_CLOSED})"
MAILBOX_EITHER_WORDS = (
    rf"^(?=.*?(?:{EITHER}|\w/\w))(?:.*?{alternatives()}"
    rf"|(?=.*?(?:{EITHER}[^.;]{{0,40}}{MILDER}|{MILDER}[^.;]{{0,40}}{EITHER}))"
    rf"(?=.*?(?:{NO_SUCH_MAILBOX}|\b{UNKNOWN_PREDICATE}|{UNSPACED_UNKNOWN})))"
)
"""Unknown or something milder, for example closed or not able to receive: not established which."""

STORAGE = r"(?:mail ?box|in-?box|account|storage|folder|mail ?folder|maildir|user|recipient|mail ?drop|xaddrx)"
OWNER = r"(?:mailbox|user|account|recipient)"
ROOM = r"(?:(?:mail|mailbox|disk|storage)? ?(?:space|quota|room)|storage)"
FULL = join_column("full")
MAILBOX_FULL_WORDS = phrases(rf"""
    over[- ]?quot[ae]  quota is over  mail ?box limit exc?e+ded  \b{OWNER} has not enough
    over (?:\w+ ){{1,2}}quota  (?:user|domain) ?disk quota
    mailbox (?:size|storage) limit  mailbox (?:size|storage)\b[^.;]{{0,24}} exceed  \bfull (?:mail ?box|in-?box)
    \bquota[^.;]{{0,30}}\b(?:exceed|exced|full|reached|not sufficient|violat|depass|superat|uberschritten)
    exceed\w*[^.;]{{0,40}}\b(?:quota|storage|allocation|mailbox size|disk)  disk ?space quota
    \b{STORAGE}\b[^.;]{{0,40}}\b(?:is |are )?(?:too )?full\b
    (?:mail ?box|in-?box)[^.;]{{0,30}} (?:over|exceed\w*)[^.;]{{0,20}}limit
    \b(?:{STORAGE}|xaddrx) (?:storage |size )+limit  mail file size exceeds
    \bstorage limit (?:of|for) (?:the |this |your )?{STORAGE}\b
    exceeds? the (?:remaining|free|available) (?:space|room) \w+ (?:the |this )?{STORAGE}\b
    \b{STORAGE}\b(?: \w+)? exceeds (?:the |its )?allowed size  \b{OWNER} has exceeded$
    \b(?:exhausted|overdrawn|used up)\b[^.;]{{0,30}}\b{ROOM}\b
    \b{ROOM} (?:has (?:been )?|is |was )?(?:exhausted|used up|full)
    \b(?:storage|mail ?box|mail) ?space (?:is )?not enough  \bquota[^.;]{{0,20}}hard limit
    reached (?:its |his |her |the |their )?(?:disk |storage |mailbox )?quota
    too (?:many messages|much (?:e-?)?mail) (?:on|in) (?:the |this |his |her |their )?(?:server|mail ?box)
    \b{STORAGE}\b[^.;]{{0,30}} maximum number of messages  \btoo much mail data\b
    \boverfull\b  no more (?:space|room)\b  at (?:its |their |his |the )?(?:quota|limit|capacity)\b
    \b(?:storage|quota|capacity|mail ?box)(?: limit)? (?:has been |was |is )?reached
    reached (?:its |the |his |their )?(?:storage|mailbox|maximum) (?:limit|size|capacity)
    (?:exceed\w* (?:the |its )?)?\b{STORAGE} capacity(?: (?:is |has been )?exceeded)?
    out of (?:storage|space|(?:disk )?quota|disk space|mailbox space)  \b{STORAGE} is stuffed  \b(?:alias|e-?mail) full
    \b{STORAGE}\b[^.;]{{0,20}} exhausted (?:its |the )?allowed
    (?:not |un)able to receive (?:any )?more (?:e-?)?mail
    (?:insufficient|not enough|no) {OWNER}? ?(?:storage|space|quota|room)[^.;]{{0,30}}(?:{OWNER}|left)
    (?:not|n't) (?:have )?enough (?:mail |mailbox |storage |free )?(?:space|room|storage)  insufficient {OWNER}
    ^(?=.*?\b{FULL}\b).*?\b{ANY_MAILBOX}\b{GAP}\b{FULL}\b
    {UNSPACED_MAILBOX}{CLOSE_TO}{join_column("full", spaced=False)}
    {join_column("exhausted")}
""")
"""The mailbox exists and accepts no more mail."""

FOREIGN_UNKNOWN = join_column("unknown", first=1)
FOREIGN_DOMAIN = join_column("domain")
UNSPACED_DOMAIN = join_column("domain", spaced=False)
DOMAIN_UNKNOWN_PREDICATE = phrases(r"""
    not found  unknown  does ?n[o']t exist  not exist  invalid  lookup  unresolv\w*  suspended  disabled  expired
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
    find (?:the|a) (?:recipient |valid )?(?:domain|mx|host)  loops? back  \bdns\b[^.;]{{0,36}}\bno such
    name service error  all relevant mx records
""")
"""The server cannot resolve the domain, so nothing is known of the mailbox."""

FORWARDING = mark_words(r"""
    weiterleitung\w*  redirection  r[ée]exp[ée]dition  reenv[íi]o  redirec[cç][cçií]\w+  inoltro  reencaminha\w+
    doorstuur\w*  переадрес\w+  пересыл\w+  przekierowa\w+  p[řr]esm[ěe]rov\w+  [áa]tir[áa]ny\w+  y[öo]nlendirme
    转发  轉發  (?<!又は)転送先  전달
""")
FORWARD_WORDS = FORWARDING + r"|(?<!no )\bforward(?:ing|ed|s)? (?:address|to\b)|\balias (?:loop|target|expands)"
"""The mailbox forwards to another address: what is unknown may be that one."""

THING_OF_USER_WORDS = (
    rf"\b{THING_OF_USER} (?:\S+ ){{0,2}}?(?:[ld]'|dell')?{ANY_MAILBOX}\b"
    rf"|{UNSPACED_MAILBOX} ?[的の의]? ?{UNSPACED_THING}(?!に)"
)
"""What is unknown may be a folder, key or profile of the user."""

# Beside these words an enhanced code alone does not mean the mailbox.
MESSAGE = r"(?:message|mail|connection|transaction|service|session|command|attachment|e-?mail)"
OTHER_SUBJECT_WORDS = phrases(rf"""
    \b{MESSAGE}s?\b[^.;]{{0,30}}\b(?:reject|rejet|refus|unavailable|not accept|fail|declin|discard)
    \b(?:may|might)\b  {DOUBT_WORDS}  {OFFLINE_WORDS}  \w\?\w  \?{{3}}
    go away  {TEMPORARY_WORDS}  \bor not local  unverified  \bnot (?:be )?verified
    not responsible
    \b(?:domain|host|list|argument|parameter)\b
    \b{join_column("domain")}\b  {join_column("domain", spaced=False)}  {RETRY_WORDS}  {SERVER_FAILURE_WORDS}
    \bverif  uberpruf  {UNKNOWN} (?:error|command|reason)  \bencrypt  \boffline\b  \bdatabase\b  disk ?space
    (?:maximum|exceeds) allowed  any more mail  unable to (?:process|validate)  space available  too large
    (?:not|n't) want  \bno permi  \bdeny\b
    refus\w+ (?:your|this|the)  \bloop\b  \bexpansion  not attempted  too big  \berror in  unable to check
    (?:could|can) ?n[o']t (?:look|check)  {UNKNOWN} (?:failure|mailer)  \bdied\b  await
    \bsize\b  (?:cannot|can't|could not|unable to) (?:determine|confirm)  by another process  several matches
    not unique  \bambiguous  \bno (?:valid )?route  (?:media|mailer|system|network|configuration|output) error
    \btransport\b
    create (?:user )?output  regular file  \bon hold\b  \bdelayed\b  \bauto-?reply  refuses? to  \blicen[cs]e
    n't (?:authori[sz]ed|allowed|permitted)  \b{join_column("error")}\b  {join_column("error", spaced=False)}
    \b(?:user|recipient) (?:reject|refuse)s?\b  \bpaused  migrat  \bvacation  out of (?:office|town)  \blegal
    investigation  unsubscribed  suppressed  reachable  attachment  \bnot (?:yet|ready)\b  corrupt  \buntil\b
    for \d+ (?:minute|hour|day)  \bkey\b  \bsigned\b  web ?site  contact form  \bfilter  signature
    \b(?:quota|status|state|type|family|agent|protocol) (?:is )?(?:not found|unknown)  \bmust\b  \brequires\b
    \bno such (?:command|exchanger|file|mail|network|newsgroup|option|service)\b  in (?:use|transition)\b
    user (?:connection|closed|deleted|disabled|removed)
    \bforbid  hangup  syntax error  \bsequence\b  \bsession\b  by customer  reserved  full(?:y[- ]qualif|$)
""")
"""The text is about the message, the session or the server, not about a mailbox."""

# The text beside which the code decides is nothing but a refusal of the recipient, or names the mailbox in English; in
# other languages an unread verb may say that the recipient refuses the message.
REFUSAL_ALONE = phrases(r"""
    sorry  rejected  refused  fail(?:ed|ure)  permanent(?:ly)?  fatal  delivery  delivered  undeliverable  bad
    destination  invalid  wrong  incorrect  unknown  known  found  exists?  valid  here  such  requested  action  taken
    smtp  error  status  code  no  not  is  was  be  been  has  does  do  could  cannot  can't  or  to  at  by  of  the
    an?  this  that  one  recipient  address  x\w+x  \w*\d\w*  [\w-]+(?:\.[\w-]+)+
    d[eu]s?  de la  el  l[aeo]s?  il  l  d  d[eiaor]s?  der  dem  della?  dell  do  da  van  av  af
""")
REFUSED_ELSEWHERE = mark_words(r"""
    abgelehnt  abgewiesen  zur(?:ue|ü)ckgewiesen  rejet[ée]e?  refus[ée]e?  rechazad[oa]  rebutja\w+  rejeitad[oa]
    recusad[oa]  rifiutat[oa]  respint[oa]  geweigerd  avvisad  afvist  avvist  hyl[äa]tty  odrzucon\w+  odm[íi]tnut\w*
    odmietnut\w*  zam[íi]tnut\w*  elutas[íi]tva  respins[ăa]?  odbijen[ao]?  zavrnjen[ao]?  отклон[её]н[ао]?
    отвергнут[ао]?  відхилен[ао]?  отхвърлен[ао]?  одбијен[ао]?  απορρίφθηκε  reddedildi  مرفوض  נדחתה?  ditolak
""")
UNSPACED_REFUSED = mark_words("""
    被?拒[绝絕]  拒否され(?:ました|た)  거부(?:됨|되었습니다)  ถูกปฏิเสธ  [はがをの的已이가은는]
""")
REFUSAL_ONLY = (
    rf"\W*+(?:\b(?>(?:{REFUSAL_ALONE}|{ANY_MAILBOX}|{FILLER}|{REFUSED_ELSEWHERE})\b)\W*+"
    rf"|(?>{UNSPACED_MAILBOX}|{UNSPACED_REFUSED})\W*+)*+$"
)
POSTFIX_CLASS = r"(?:recipient )?address rejected: ?\w"  # before any text: it names no subject
RECIPIENT_REFUSED_WORDS = rf"\b(?!xaddrx|{POSTFIX_CLASS}){MAILBOX}\b|^{REFUSAL_ONLY}"
"""Nothing but a refusal of the recipient: beside it an enhanced code for the mailbox is about the mailbox."""

ADDRESS_REFUSED_WORDS = (
    rf"\b(?!{POSTFIX_CLASS})(?:recipient|mailbox|user|account|address(?:ee)?|rcpt)\b|^(?=.*\bxaddrx\b){REFUSAL_ONLY}"
)
"""The text names the mailbox or its address in English and no other subject."""

# --- client ---------------------------------------------------------------------------------------------------------

HOST = r"(?:host|server|system|machine|isp|provider|site|gateway|hostname|smtp)"
CLIENT = phrases(rf"""
    \bips?\b  \bipv[46]\b  \bip[- ]?addr\w*  \bclient\b  \bmta\b  \bnetwork\b  connections? from
    \b(?:your|sending|remote|connecting|source|originating|this|sender'?s) (?:mail ?)?{HOST}\w*
    \b(?:votre|su|seu|suo|tuo|ihre?) (?:serveur|servidor|server|mailserver)\b
""")
"""Names of the client: the machine that connects."""

REFUSED = phrases(r"""
    block(?:ed|ing|s)?\b  banned  den(?:y|ied)\b  refus\w+  reject\w*  black-? ?list\w*  block-? ?list\w*
    not (?:been )?(?:allowed|permitted|authori[sz]ed|accepted|welcome|trusted|in (?:the |our )?(?:white|allow)-?list)
    unauthori[sz]ed  restricted  prohibited  throttl\w+  rate[- ]limit\w*  limited  deferred  suspended  forbidden
    filtered  bloque\w*  bloccat\w+  rifiutat\w+  bloquead\w+  rechazad\w+  rejeitad\w+  gesperrt  abgelehnt
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
    uw  din  ditt  deres  tw[oó]j\w*  pa[ńn]stwa  v[áa][šs]\w{0,3}  ваш\w{0,4}  j[uū]s[uų]  tavs  teie  az [öo]n
    сіздің  თქვენი  ձեր
""")
YOURS = mark_words(r"dumneavoastr[ăa]  anda  σας  שלך  c[uủ]a b[aạ]n  شما")
UNSPACED_YOUR = mark_words("您的  你的  お客様の  あなたの  귀하의  당신의  고객님의  आपका  आपके")
RECIPIENT = mark_words(r"""
    destinat  recip  empf  ontvang  geadr  mottag  modtag  mottak  vastaanot  odbiorc  adres[aá]t  p[řr][ií]jem
    c[ií]mzett
    primatel  primal  prejemn  получат  адресат  одержувач  отримувач  παραλ  penerima  saaja  gav[eė]j  sa[nņ][eē]m
    алушы
""")
SENDING = mark_words(r"""
    verzendende  s[äa]ndande  sendende  отправляющ\w+  wysy[łl]aj[ąa]c\w+  odes[íi]laj[íi]c[íi]  odosielaj[úu]c\w+
    (?:der|die) sendet
    que env[íi]a  che invia  qui envoie  发送(?:用户|者|方)  送信(?:ユーザー?|者)  보내는
""")
CLIENT_OR_SENDER_WORDS = phrases(rf"""
    \b{YOUR} (?!{RECIPIENT}){ANY_MAILBOX}\b  \b(?!{RECIPIENT}){ANY_MAILBOX} {YOURS}\b
    {UNSPACED_YOUR} ?{UNSPACED_MAILBOX}
    \bhesab[iı]n[iı]z  \btiliasi\b  حسابك  {SENDING}
    \bsend(?:er|ing)  mail ?from\b  \bfrom:? (?:address|field|header)  known to you\b  return[- ]?path
    reverse[- ]?path  originat  envelope[- ]from
    return(?:ed)? address  \breply[- ]?(?:to|address)  \bsubmit  \bposters?\b  \bchosen (?:not )?to\b  \bopted\b
    parental  used to send  \bto send\b  \bmay not (?:send|write|post)\b  \bauthor(?:'s)?\b  (?:back|return)\w* verif
    you are sending  \byou (?:claim|send|use|have no|do(?: not|n't) have)\b  \byou(?:'re| are) not\b
    log-?in (?:fail|incorrect|denied)  \bheader address  \bin (?:the )?from\b  members?[- ]only  \bbatv  \bsrs\b
    \bverp\b  backscatter
    \bdsns?\b  \bbounce
    \b(?:user|recipient) refused to  \brule imposed  (?:not|n't) want (?:your|this|any)\b
    \bmessage contains  \be2110\b  verification in progress
    \bhelo\b  \behlo\b  \barguments?\b  \bparameters?\b  \bspf\b  \bdkim\b  \bdmarc\b  spoof  forge(?:d|ry)?\b
    \brelay  relais  \bgateway  \bconnecting  \bremote (?!(?:mail )?(?:server|host) (?:returned|said|after))
    \bhost \(?xipx
    \bips?\b  \bipv[46]\b  \bclient\b  \brdns\b  \bptr\b  host ?name  \baddr\w*:? \(?xipx(?!\W*$)
    \b(?:server|host|machine|network|system)'?s? (?:address|name|ip)\b
    polic(?:y|ies)  politi(?:que|ca)  richtlinie  prefer  complian  certificate  \btls\b  protected by  security
    (?:black|block|white|deny|allow|reject|gr[ae]y)[- ]?list  \brbl  dnsbl  reputation
    spam  indesirable  no deseado  indesiderat  unerwu?e?nscht  unsolicited  \bjunk\b  \bbulk\b  virus  malware  phish
    abus  suspicious  suspect  quarantin  content
    \bblock(?:ed|ing|s)?\b  \bbanned\b  \bdenied\b  \brefused by  refuses  prohibit  forbidden  restrict  external
    internal  unauthori[sz]ed  not (?:authori[sz]ed|allowed|permitted)  permission
    only accept  not (?:currently )?accept
    authenticat  \bauth\b  credential  password
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
    соединени  подключени  з'єднань  підключень  връзки  połączeń  spojen[íi]  pripojen[íi]  kapcsolat  verbindingen
    anslutningar  forbindelser  tilkoblinger  yhteyksi  ühendus  savienojum  ryši  prijungim  veza  povezav  bağlant
    συνδέσεις  اتصال  חיבורים  连接  連線  接続  연결  kết nối  koneksi
""")
CAPACITY_WORDS = phrases(rf"""
    too many (?:\w+ ){{0,3}}(?:connections?|sessions?|errors?|processes|commands|transactions)
    too many (?:\w+ ){{0,3}}messages (?:in|per|this|on)(?! (?:the |this |his )?(?:server|mail ?box))
    (?:connection|session)s?[- ](?:rate |count )?limit  connection rate
    (?:max\w*|number of)[^.;]{{0,30}}(?:connections|sessions)
    concurrent (?:\w+ )?(?:connections|sessions)  max\w* messages? per (?:connection|session)  slow(?:ing)? down
    overload  load (?:average )?(?:is )?too high  server ports are busy  \bhl:i[cf]c\b
    (?:{TOO_MANY}|{UNSPACED_TOO_MANY})[^.;,]{{0,20}}{FOREIGN_CONNECTIONS}
    trop de connexions  demasiadas conexiones  troppe connessioni  zu viele verbindungen  muitas conexoes
""")
"""Too many connections or sessions at once, or a server under load."""

SENDER = r"\b(?:sender|helo|ehlo|mail ?from|from|return[- ]path|envelope)(?:'s)?"
BLACKLIST_WORDS = (
    r"(?:\b(?:black|block|deny|ban|reject|bad|spam(?:mer)?)[- ]?list(?:ed|ing|s)?\b"
    rf"|\b{FOREIGN_LISTED}\b|{UNSPACED_LISTED}"
    r"|\b(?:liste noire|lista (?:negra|nera|neagra)|sperrliste|schwarze\w* liste))"
)
DNS_LIST_NAMES = phrases(r"""
    spamhaus  spamcop  barracuda ?central  barracuda reputation  \bsorbs\b  abuseat  \bcbl\b  dns ?[bw]?l\b  dnsbl
    dnsrbl  \brbls?\b  \brbl[+ -]  uceprotect  psbl  invaluement  mailspike  nixspam  manitu  senderbase
    sender ?score  trustedsource  cloudmark  talosintel  backscatterer  hostkarma  junkemailfilter  njabl  spamrats
    gbudb  mail-abuse  ers\.trendmicro  blackhole  ipcheck\.  spfbl  swinog  surriel  wpbl  lashback  ascams
    blocklist\.de  drbl  \bers-  abusix  \bxbl\b  \bpbl\b  \bsbl\b  0spam  ipadmin\.  blocked using
    blocked by (?:\S+\.){2}
""")
"""Names of DNS lists of IP addresses, for the unmasked text."""

DOMAIN_LISTED_WORDS = phrases(rf"""
    {SENDER}[ -](?:address|domain|hostname)\b[^;]{{0,60}}\b(?:listed|blocked using|{BLACKLIST_WORDS})
    \bdomain\b[^.;]{{0,40}}(?:\blisted\b|{BLACKLIST_WORDS})  {BLACKLIST_WORDS}[^.;]{{0,20}}\bdomain\b
    \bsender (?:xaddrx )?(?:is |was )?{BLACKLIST_WORDS}
""")
REVERSE_DNS_WORDS = phrases(rf"""
    reverse[- ]?(?:dns|look-?up|resol\w+|host\w*|name|mapping|record|ip|zone|client|address)  \brdns\b  \bptrs?\b
    fc-?rdns  forward[- ]?confirm  cannot find your  ip name look  hostname look
    (?:your|client|sending|remote|connecting) (?:\w+ ){{0,2}}[^.;]{{0,40}}\b(?:not|n't|unable to) resolve
    (?:dns|host ?name) (?:entry |record |found )?(?:for|of) (?:your|client|xipx)
    no (?:valid )?(?:dns|host ?name) (?:entry|record|found)
    (?:your|client|connecting) (?:host|ip|server)\w* (?:has no|without) (?:a )?(?:dns|name)  \bip\b[^.;]{{0,20}}\bresolv
    \bdns (?:revers[eo]|invers[eo])  (?:resolucion|risoluzione|resolution|resolucao) (?:dns )?invers[ae]
    \b{join_column("reverse_dns")}  {join_column("reverse_dns", spaced=False)}
""")
ACCESS_NETWORK_WORDS = phrases(r"""
    \bdynamic(?:ally)?\b  dial-?up  residential  \ba?dsl\b  generic (?:ptr|r?dns|host)  end-?user (?:ip|net|range)
    \bdul\b
""")
UNWANTED = r"(?:invalid|unknown|unwanted|bad|non-? ?exist\w*|undeliverable|unsolicited|failed|wrong|incorrect|rejected)"
COUNTED = r"(?:recipients|requests|addresses|messages|mails?|e-?mails?|rcpts?|users)"
RATE_WORDS = phrases(rf"""
    (?:max\w*|number|count|limit|percent\w*|threshold|amount)[^.;]{{0,24}} {UNWANTED} {COUNTED}\b
    \b{UNWANTED} {COUNTED} (?:limit|count|rate|threshold|quota)
    \b{TOO_MANY}\b[^.;]{{0,40}}\b(?:{FOREIGN_UNKNOWN}|tentativ|intentos)  {UNSPACED_TOO_MANY}
    recipients? exceed\w*  unusual (?:rate|volume|amount)  too many {UNWANTED}\b  sent to too many
    too much mail(?! data| on)  ratelimit
    frequency limit  throttl  too many {COUNTED}\b[^.;]{{0,40}}(?:from|hour|minute|\bday|your|xipx|this (?:ip|host))
    \brate\b[^.;]{{0,12}}(?:limit\w*|exceeded|control)  exceed\w*[^.;]{{0,40}}\b(?:rate|permitted limits|volume)
    excessive (?:rate|volume|number|{UNWANTED}\b)  unexpected volume  user complaints  permanently deferred
    dictionary attack  harvest  namespace mining  \[tss?\d+\]  \bs31[45]0\b  \bhl:(?:rep|ipb)\b
    \bib(?:[01]\d\d|504|607)[a-z]?\b
""")
"""Limits on what a client sends, in words and in the codes of Yahoo, Outlook.com, NetEase and GoDaddy."""

CLIENT_REFUSED_WORDS = phrases(rf"""
    {CLIENT}[^.;]{{0,60}}{REFUSED}  {REFUSED}[^.;]{{0,60}}{CLIENT}  messages? from \(?xipx
    (?:block(?:ed|ing)|banned|denied|black-?listed|not allowed|refused)[^.;]{{0,30}} xipx
    xipx[^.;]{{0,20}} (?:blocked|banned|denied|refused|(?:is )?not (?:allowed|permitted|welcome|accepted))
    \bip[ -]based  \bbad ip\b  \bip has exceeded\b  \bip\b[^.;]{{0,30}} not (?:in|on)(?= )  found on (?:a|an|our|one of)
    \bip\b[^.;。]{{0,40}}(?:禁止|封禁|屏蔽)
""")
COUNTRY = r"\b(?:country|countries|geo-?\w*|region)\b"
COUNTRY_REFUSED_WORDS = phrases(
    rf"{COUNTRY}[^.;]{{0,60}}{REFUSED}  {REFUSED}[^.;]{{0,40}}{COUNTRY}  not accept[^.;]{{0,40}}{COUNTRY}"
)
ACCESS_REFUSED_WORDS = phrases(r"""
    not accepting (?:connections|mail from (?:you|your|this(?! sender)))  your access
    access (?:from|for) (?:you|your|this)
    connections? (?:will not be |not |is not |are not )?(?:accepted|rejected|denied|blocked|refused)
    no smtp (?:service|access)  spam source  open prox  compromised  botnet  infected  zombie  tor exit
""")
SPAM = r"(?:unsolicited|spam\w*|abus\w+)"
ABUSE_WORDS = phrases(rf"""
    (?:{SPAM}|suspicious|malicious)[^;]{{0,80}}(?:{CLIENT}|xipx)  (?:{CLIENT}|xipx)[^;]{{0,80}}{SPAM}
""")

# --- sender ---------------------------------------------------------------------------------------------------------

RELAY_WORDS = phrases(rf"""
    \brelay  relais  \bretransmiss\w+ (?:nega|nao|proib)  \breencaminhamento (?:nega|nao|proib)
    weiterleitung[^.;]{{0,20}} nicht  rcpthosts  gateway for  non-accepted domain  not a (?:local|hosted) domain
    \bdomain (?:or user )?(?:is ?n[o']t|is not|not) (?:hosted|local|served|handled|accepted|allowed|in my|here)
    \b(?:do|does)(?: not|n't|nt) (?:accept|handle|host|serve|process)[^.;]{{0,20}} domain
    \b(?:do|does)(?: not|n't|nt) (?:handle|host|serve|process) (?:e-?)?mail (?:for|of|to)\b  not a gateway
    \bnot hosted (?:here|on)  \b(?:do|does)(?: not|n't) provide (?:e-?)?mail
    \bnot our mx\b  \b(?:that|this|the|your) domain (?:or user )?isn't in
    {join_column("not_served")}
""")
CERTIFIED_MAIL_WORDS = phrases(r"""
    \bnon[- ]certificat\w+  \bnot certified  \b(?:posta|e-?mail|messaggi\w*)(?: \w+)? (?:ordinari|convenzional)\w+
    \bsol[oaei]\b[^.;]{0,50}\b(?:pec|certifica[td]\w+)  \b(?:soltanto|esclusivamente)[^.;]{0,50}\b(?:pec|certificat\w+)
    \b(?:non?|not)[- ](?:da |an? )?pec\b  \bcertified (?:e-?)?mail\b[^.;]{0,20} only  \bpec only
    \bonly[^.;]{0,20} (?:pec|certified (?:e-?)?mail|de-mail)\b
    \bde-mail\b  \bordinary (?:e-?)?mail\b  \bregular e?-?mail not accepted
""")
"""The mailbox accepts certified mail only (Italian PEC, German De-Mail)."""
SENDER_WORDS = phrases(r"""
    \bsender  mail ?from\b  badmailfrom  from (?:address|domain)  return[- ]?path  reverse[- ]?path  originator
    envelope[- ]from
    exp[e?]diteur  [e?]metteur  envoyeur  remitente  mittente  absender  remetente  \bbatv  backscatter
    dns mx or a/aaaa
""")
"""Any word for the sender; the last one is GMX's text for a sender's domain without records."""
