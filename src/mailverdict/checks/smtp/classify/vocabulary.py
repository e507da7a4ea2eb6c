"""Words that put off: trouble of the server's own, and "later". Patterns of the folded and masked text."""

from __future__ import annotations

from .wording import phrases

__all__ = [
    "ABSENT",
    "ABUSE",
    "ACCESS_NETWORK",
    "BLACKLIST",
    "CAPACITY",
    "CLIENT",
    "CLIENT_REFUSED",
    "CLOSED",
    "DOMAIN_LISTED",
    "DOMAIN_TROUBLE",
    "FULL",
    "LATER",
    "NAMED_LIST",
    "NO_ACCESS",
    "NO_MAILBOX",
    "PLACE_REFUSED",
    "RATE",
    "RELAYING",
    "REVERSE_DNS",
    "SENDER",
    "SERVER_TROUBLE",
    "US",
]

PART = phrases(r"""
    server  internal  local  system  look-?up  database  db  ldap  dns  directory  resolver  alias  disk  memory
    resource
    storage  configuration  backend  i/o  file ?system  queue  mail system  map  table  verification  validation
""")
FAILS = phrases(r"""
    errors?  problems?  fail\w*  trouble  issues?  unavailable  exhausted  insufficient  full  down  not available
    timed? ?out  corrupt\w*  crash\w*
""")
SERVER_TROUBLE = phrases(rf"""
    \b{PART}s?\b[^.;]{{0,24}}\b{FAILS}
    insufficient (?:system|disk|memory|resource|storage)\w*  (?:error|problem) in processing  timed? ?out  \bbusy\b
    out of memory  shutting down  maintenance  unable to (?:lookup|look up|verify|connect|contact)
    (?:could|can) ?not (?:be )?(?:connect|contact|complet|verif|load|open|access)\w*
""")
"""Something of theirs is broken."""

LATER = phrases(r"""
    \blater\b  try (?:it )?again  \bretry  come back  \bdeferr?ed  please wait  try (?:in|after)
    (?:temporar\w+|currently|momentarily) (?:unavailable|not available|unable|fail\w*|delayed)
    (?:temporar\w+|currently|momentarily) (?:deferred|reject\w*|refus\w*)
    plus tard  reessayer  mas tarde  intentelo  piu tardi  riprov  spae?ter  mais tarde
""")
"""They ask to come back."""


# Nouns that name a mailbox, in the languages whose servers answer in their own.
BOX = phrases(r"""
    users?(?: ?name| ?id)?  recipients?  accounts?  address(?:es|ee)?  mail ?box(?:es)?  in-?box  mail ?drop
    alias(?:es)?
    customer  subscriber  person  local[- ]?part  rcpt  e-?mail ?(?:id|box)  employee  student  xaddrx
    utilisateur  destinataires?  adresse  compte  boite(?: aux lettres| mail)?  abonne
    usuario  destinatario  cuenta  direccion  buzon  casilla
    utente  casella  indirizzo
    benutzer  nutzer  empfae?nger(?:adresse)?  postfach  konto  teilnehmer  kunde  anwender
    utilizador  conta  caixa(?: postal| de correio)?  endereco
    gebruiker  ontvanger  adres  uzytkownik  skrzynka  пользовател[ья]  ящик
""")
# Between noun and predicate: a few words, but no other noun that the predicate could belong to, and no doubt.
OTHER_NOUN = phrases(r"""
    domain  host  server  dns  mx  sender  client  ip  relay  helo  ehlo  dominio  domaine  file  route  record  key
    certificate  list  policy  transport  service  error  lookup  database  rule  connection  channel  session  command
    message  may  might
""")
GAP = rf"(?:(?!\b{OTHER_NOUN}\b)[^.;!?]){{0,48}}?"
# An adjective that goes on with another noun is not the mailbox's: "<x@example.org>: invalid argument".
NEXT_NOUN = phrases(r"""
    error  command  argument  parameter  host  domain  helo  ehlo  syntax  reason  option  sender  client  failure
    response  data  character  format  reverse  protocol  server  network  certificate  request  sequence  message
    content  header  mx  dns  ip  relay  source  service  encoding  tls
""")
ALONE = rf"\b(?! {NEXT_NOUN})"

NOT_THERE = phrases(r"""
    unknown  not known  not found  notfound  (?:could|can) ?not be (?:found|located)  not exists?  not existing
    (?:does|do|did)(?: not|n't| nt) (?:currently )?exist  non-? ?exist(?:ent|ing|ant)?
    no longer (?:exists?|valid|in use|with|works?|employed|here|on (?:this|our))
    not (?:a )?(?:valid|recogni[sz]ed|registered|listed|known|defined|present|a local|local to|here)
    invalid  undeliverable  unroute?able  illegal  misspelled  is (?:bad|wrong|incorrect)  has (?:left|moved)  moved
    inconnue?s?  inexistante?s?  introuvables?  n'existe (?:pas|plus)  invalides?  non trouvee?
    desconocid[oa]s?  inexistentes?  no existe  no encontrad[oa]  no valid[oa]  invalid[oa]
    sconosciut[oa]  non esiste  non trovat[oa]  non valid[oa]
    unbekannt\w*  nicht bekannt  existiert nicht  nicht gefunden  nicht vorhanden  ungue?ltig\w*  unzustellbar
    nicht (?:mehr )?(?:gue?ltig|existent)
    desconhecid[oa]  nao existe  nao encontrad[oa]  nao valid[oa]
    onbekend\w*  bestaat niet  nie istnieje  nieznany  не найден\w*  не существует
""")
SHUT = phrases(r"""
    inactive  disabled  deactivated  suspended  deleted  removed  closed  cancell?ed  terminated  expired  discontinued
    retired  abandoned  dormant  frozen  archived  not active  not enabled  not activated
    no longer (?:active|available|accepts?|accepting|monitored)
    desactivee?s?  suspendue?s?  fermee?s?  expiree?s?  supprimee?s?  archivee?s?  n'est plus \w+
    desactivad[oa]  deshabilitad[oa]  inactiv[oa]  suspendid[oa]  cancelad[oa]  cerrad[oa]  dad[oa] de baja
    disabilitat[oa]  disattivat[oa]  inattiv[oa]  sospes[oa]  chius[oa]  scadut[oa]  cessat[oa]
    deaktiviert  stillgelegt  inaktiv  geloe?scht  abgelaufen  nicht (?:mehr )?aktiv  gesperrt
    desativad[oa]  desabilitad[oa]  inativ[oa]  suspens[oa]  encerrad[oa]  removid[oa]
""")

QUALIFIER = phrases(r"""
    such  valid  known  local  active  existing  e-?mail  mail  matching  more  longer an?  destination  rcpt to
""")
KIND = f"(?:{QUALIFIER} )*"  # "no such local mailbox"
WRONG = r"(?:unknown|invalid|bad|non-?exist(?:ent|ing)|unroute?able|undeliverable|illegal|wrong|incorrect)"
BOOK = r"(?:directory|address book|name|list|map|database|table)"
NO_SUCH = phrases(rf"""
    \bno (?!(?:valid )?recipients\b){KIND}{BOX}\b(?! (?:given|specified|have|has|were))
    \bno such (?:one|name|{BOX})
    \b(?:not|isn't) (?:a|an|one of our|our|my) {KIND}{BOX}\b
    \b{WRONG}(?: or \w+)?[- ]{KIND}(?:destination )?{BOX}\b(?! names? or password)
    \b(?:does|do)(?: not|n't) have (?:a|an|any)(?: \S+){{0,3}}? {BOX}
    \b(?:nobody|no[- ]one|no person) (?:here|by that name)
    \bnot (?:listed |found )?in (?:the |our )?(?:(?:public|domino|recipient|user|address)s? )*{BOOK}\b
    \b(?:can'?t|can ?not|could ?n[o']t|unable to) (?:find|locate) (?:the |a |that |this |your )?{KIND}{BOX}
    resolver\.adr\.\w*notfound
    \b(?:aucun|pas d[e']) ?{BOX}  \bkein\w* (?:\w+ )?{BOX}  \bunbekannte\w* {BOX}  \bungue?ltige\w* {BOX}
    \bonbekende {BOX}  \bning[u]n {BOX}  \bnenhum {BOX}  \bnessun {BOX}  \bnie ma takiego (?:uzytkownika|konta|adresu)
""")
ABSENT = phrases(rf"{NO_SUCH}  \b{BOX}\b{GAP}\b{NOT_THERE}{ALONE}")
"""The mailbox is not there."""

CLOSED = phrases(rf"""
    \b{BOX}\b{GAP}\b{SHUT}{ALONE}
    \b(?:inactive|disabled|suspended|expired|closed|deleted|deactivated|archived) {KIND}{BOX}\b
    due to (?:extended )?inactivity
""")
"""The mailbox was, and is shut."""

STORE = r"(?:mail ?box|in-?box|account|storage|folder|mail ?folder|maildir|user|recipient|mail ?drop|xaddrx)"
OWNER = r"(?:mailbox|user|account|recipient)"
FULL = phrases(rf"""
    over ?quota  over the (?:\w+ )?quota  mailbox (?:size|storage) (?:limit|exceed)  \bfull (?:mail ?box|in-?box)
    \bquota[^.;]{{0,30}}\b(?:exceed|exced|full|reached|violat|depass|superat|uberschritten)
    exceed\w*[^.;]{{0,40}}\b(?:quota|storage|allocation|mailbox size|disk)
    \b{STORE}\b[^.;]{{0,40}}\b(?:is |are )?(?:too )?full\b
    mailbox[^.;]{{0,30}} (?:over|exceed\w*)[^.;]{{0,20}}limit
    out of (?:storage|space|quota|disk space|mailbox space)
    (?:insufficient|not enough|no) {OWNER}? ?(?:storage|space|quota|room)[^.;]{{0,30}}(?:{OWNER}|left)
    insufficient {OWNER}
    \b(?:boite|bal|compte)\b[^.;]{{0,40}}\b(?:pleine?|saturee?)\b
    \b(?:buzon|casilla|cuenta)\b[^.;]{{0,40}}\b(?:llen[oa]|excedid[oa]|sin espacio)\b
    cuota[^.;]{{0,20}}(?:excedid|superad)
    \bcasella\b[^.;]{{0,40}}\b(?:pien[oa]|esaurit[oa])\b  spazio[^.;]{{0,20}}(?:esaurito|insufficiente)
    \b(?:postfach|mailbox|konto|speicher)\b[^.;]{{0,40}}\b(?:voll|ue?berfue?llt|erschoe?pft)\b  ue?berschritten
    \b(?:caixa|conta)\b[^.;]{{0,40}}\b(?:cheia|lotada|excedid[oa])\b
""")
"""The mailbox is there and takes no more."""

DOMAIN_GONE = phrases(r"""
    not found  unknown  does ?n[o']t exist  not exist  invalid  lookup  unresolv\w*  suspended  disabled  expired
    not (?:local|hosted|served|handled|accepted|configured|here)
""")
DOMAIN_TROUBLE = phrases(rf"""
    \b(?:domain|host(?:name)?|mx|name server|dns)\b[^.;]{{0,30}}\b{DOMAIN_GONE}
    \b(?:{WRONG}|no such|valid) (?!in |at |on |for )(?:\w+ )?(?:domain|host|mx)\b
    find (?:the|a) (?:recipient |valid )?(?:domain|mx|host)  loops? back  name service error  all relevant mx records
""")
"""The server cannot see the domain: what it says of the mailbox follows from that."""

# What a code alone does not make a refusal of the mailbox: the text is about the message or the session.
MAIL_ITSELF = r"(?:message|mail|connection|transaction|service|session|command|attachment|e-?mail)"
NO_MAILBOX = phrases(rf"""
    \b{MAIL_ITSELF}s?\b[^.;]{{0,30}}\b(?:reject|rejet|refus|unavailable|not accept|fail|declin|discard)
    go away  temporar  \b(?:domain|host|list|argument|parameter)\b  {LATER}  {SERVER_TROUBLE}
""")
"""The text is about something else than a mailbox."""


MACHINE = r"(?:host|server|system|machine|isp|provider|site|gateway|hostname|smtp)"
CLIENT = phrases(rf"""
    \bips?\b  \bipv[46]\b  \bip[- ]?addr\w*  \bclient\b  \bmta\b  \bnetwork\b  connections? from
    \b(?:your|sending|remote|connecting|source|originating|this|sender'?s) (?:mail ?)?{MACHINE}\w*
""")
"""Names of the machine that connects: us."""

REFUSED = phrases(r"""
    block(?:ed|ing|s)?\b  banned  den(?:y|ied)\b  refus\w+  reject\w*  black-? ?list\w*  block-? ?list\w*
    not (?:been )?(?:allowed|permitted|authori[sz]ed|accepted|welcome|trusted|in (?:the |our )?(?:white|allow)-?list)
    unauthori[sz]ed  restricted  prohibited  throttl\w+  rate[- ]limit\w*  limited  deferred  suspended  forbidden
    bloque\w*  bloccat\w+  rifiutat\w+  bloquead\w+  rechazad\w+  rejeitad\w+  gesperrt  abgelehnt  abgewiesen
""")
"""What is done to a client that is not wanted."""

# "Your" goes with us, but for the message and whom it is for.
DELIVERY = r"e-?mail (?:to|(?:could not|cannot) be delivered)\b"
US = phrases(rf"""
    \bsend(?:er|ing)  mail ?from\b  \bfrom address  return[- ]?path  reverse[- ]?path  originat  envelope[- ]from
    return(?:ed)? address  \breply[- ]?(?:to|address)  \bsubmit  \bposters?\b  used to send  \bto send\b
    you are sending
    \byou (?:claim|send|use)\b  \byou(?:'re| are) not\b  members?[- ]only  \bbatv  backscatter  \bdsns?\b  \bbounce
    \bhelo\b  \behlo\b  \barguments?\b  \bparameters?\b  \bspf\b  \bdkim\b  \bdmarc\b  spoof  forged?\b
    \brelay  relais  \bgateway  \bconnecting  \bremote (?!server (?:returned|said))  \bhost \(?xipx
    \bips?\b  \bipv[46]\b  \bclient\b  \brdns\b  \bptr\b  host ?name  \baddr\w*:? \(?xipx
    \b(?:server|host|machine|network|system)'?s? (?:address|name|ip)\b
    polic(?:y|ies)  politi(?:que|ca)  richtlinie  prefer  complian  certificate  \btls\b  protected by  security
    (?:black|block|white|deny|allow|reject|gr[ae]y)[- ]?list  \brbl  dnsbl  reputation
    spam  unsolicited  \bjunk\b  \bbulk\b  virus  malware  phish  abus  suspicious  suspect  quarantin  content
    \bblock(?:ed|ing|s)?\b  \bbanned\b  \bdenied\b  \brefused by  refuses  prohibit  forbidden  restrict  external
    internal
    unauthori[sz]ed  not (?:authori[sz]ed|allowed|permitted)  permission  only accept  not (?:currently )?accept
    authenticat  \bauth\b  credential  password
    too (?:many|much)  \brate\b  \blimit  throttl  frequen  volume
    \byour (?!message|letter|mail\b(?! ?server)|{DELIVERY}|recipient|intended|envelope recipient)
    expediteur  emetteur  envoyeur  \b(?:votre|vos|ton)\b(?! message)  adresse ip
    remitente  mittente  remetente  \b(?:tuo|suo|vostro)\b
    \bse?u[as]? (?:ip|direccion|servidor|dominio|cuenta|correo|usuario|conta|endereco)\b
    absender  \b(?:ihre?|deine?)\b
""")
"""Any word of a refusal that is about us: beside one of these, no word about a mailbox counts."""

CAPACITY = phrases(r"""
    too many (?:\w+ ){0,3}(?:connections?|sessions?|errors?|processes|commands|transactions|messages (?:in|per|this|on))
    (?:connection|session)s?[- ](?:rate |count )?limit  connection rate
    (?:max\w*|number of)[^.;]{0,30}(?:connections|sessions)
    concurrent (?:\w+ )?(?:connections|sessions)  max\w* messages? per (?:connection|session)  slow(?:ing)? down
    overload
    load (?:average )?(?:is )?too high  server ports are busy  \bhl:i[cf]c\b
    trop de connexions  demasiadas conexiones  troppe connessioni  zu viele verbindungen  muitas conexoes
""")
"""They would talk to us, only not to so many of us at once."""

# --- whose list, name, rate ------------------------------------------------------------------------

IDENTITY = r"\b(?:sender|helo|ehlo|mail ?from|from|return[- ]path|envelope)(?:'s)?"
BLACKLIST = r"\b(?:black|block|deny|ban|reject|bad)[- ]?list(?:ed|ing|s)?\b"
NAMED_LIST = phrases(r"""
    spamhaus  spamcop  barracuda ?central  barracuda reputation  \bsorbs\b  abuseat  \bcbl\b  dns ?[bw]?l\b  dnsbl
    dnsrbl  \brbls?\b
    \brbl[+ -]  uceprotect  psbl  invaluement  mailspike  nixspam  manitu  senderbase  sender ?score  trustedsource
    cloudmark
    talosintel  backscatterer  hostkarma  junkemailfilter  njabl  spamrats  gbudb  mail-abuse  ers\.trendmicro
    blackhole
    ipcheck\.  spfbl  swinog  surriel  wpbl  lashback  ascams  blocklist\.de  drbl  \bers-  abusix  \bxbl\b  \bpbl\b
    \bsbl\b
    0spam  ipadmin\.  blocked using  blocked by (?:\S+\.){2}
""")
"""Lists of IP addresses, by name, in the text with its links."""

DOMAIN_LISTED = phrases(rf"""
    {IDENTITY}[ -](?:address|domain|hostname)\b[^;]{{0,60}}\b(?:listed|blocked using|{BLACKLIST})
    \bdomain\b[^.;]{{0,40}}(?:\blisted\b|{BLACKLIST})  {BLACKLIST}[^.;]{{0,20}}\bdomain\b
""")
REVERSE_DNS = phrases(r"""
    reverse[- ]?(?:dns|look-?up|resol\w+|host\w*|name|mapping|record|ip|zone|client|address)  \brdns\b  \bptrs?\b
    fc-?rdns
    forward[- ]?confirm  cannot find your  ip name look  hostname look
    (?:your|client|sending|remote|connecting) (?:\w+ ){0,2}[^.;]{0,40}\b(?:not|n't|unable to) resolve
    (?:dns|host ?name) (?:entry |record |found )?(?:for|of) (?:your|client|xipx)
    no (?:valid )?(?:dns|host ?name) (?:entry|record|found)
    (?:your|client|connecting) (?:host|ip|server)\w* (?:has no|without) (?:a )?(?:dns|name)
""")
ACCESS_NETWORK = phrases(r"""
    \bdynamic(?:ally)?\b  dial-?up  residential  \ba?dsl\b  generic (?:ptr|r?dns|host)  end-?user (?:ip|net|range)
    \bdul\b
""")
USELESS = r"(?:invalid|unknown|unwanted|bad|non-? ?existent|undeliverable|unsolicited|failed|wrong|incorrect|rejected)"
COUNTED = r"(?:recipients|messages|mails?|e-?mails?|rcpts?|users)"
RATE = phrases(rf"""
    unusual (?:rate|volume|amount)  too many {USELESS}\b  sent to too many  too much mail  ratelimit  frequency limit
    throttl
    too many {COUNTED}\b[^.;]{{0,40}}(?:from|hour|minute|\bday|your|xipx|this (?:ip|host))
    \brate\b[^.;]{{0,12}}(?:limit\w*|exceeded|control)  exceed\w*[^.;]{{0,40}}\b(?:rate|permitted limits|volume)
    excessive (?:rate|volume|number)  unexpected volume  user complaints  permanently deferred
    dictionary attack  harvest  namespace mining  \[tss?\d+\]  \bs31[45]0\b  \bhl:(?:rep|ipb)\b  \bib\d{{3}}[a-z]?\b
""")
"""They count what comes from us: in words, and in the codes of Yahoo, Outlook.com, NetEase and GoDaddy."""

CLIENT_REFUSED = phrases(rf"""
    {CLIENT}[^.;]{{0,60}}{REFUSED}  {REFUSED}[^.;]{{0,60}}{CLIENT}  messages? from \(?xipx
    (?:block(?:ed|ing)|banned|denied|black-?listed|not allowed|refused)[^.;]{{0,30}} xipx
    xipx[^.;]{{0,20}} (?:blocked|banned|denied|refused|(?:is )?not (?:allowed|permitted|welcome|accepted))
    \bip[ -]based  \bip\b[^.;]{{0,30}} not (?:in|on)(?= )  found on (?:a|an|our|one of)
""")
PLACE = r"\b(?:country|countries|geo-?\w*|region)\b"
PLACE_REFUSED = phrases(rf"{PLACE}[^.;]{{0,60}}{REFUSED}  {REFUSED}[^.;]{{0,40}}{PLACE}")
NO_ACCESS = phrases(r"""
    not accepting (?:connections|mail from (?:you|your|this))  your access  access (?:from|for) (?:you|your|this)
    connections? (?:will not be |not |is not |are not )?(?:accepted|rejected|denied|blocked|refused)
    no smtp (?:service|access)  spam source  open prox  compromised  botnet  infected  zombie  tor exit
""")
SPAM = r"(?:unsolicited|spam\w*|abus\w+)"
ABUSE = phrases(rf"""
    (?:{SPAM}|suspicious|malicious)[^;]{{0,80}}(?:{CLIENT}|xipx)  (?:{CLIENT}|xipx)[^;]{{0,80}}{SPAM}
""")

# --- the sender --------------------------------------------------------------------------------------

RELAYING = phrases(r"""
    \brelay  relais  rcpthosts  gateway for  non-accepted domain  not a (?:local|hosted) domain
    (?:domain|recipient domain) (?:is )?not (?:hosted|local|served|handled|accepted|in my)
    don't (?:accept|handle|host)[^.;]{0,20} domain
""")
SENDER = phrases(r"""
    \bsender  mail ?from\b  badmailfrom  from (?:address|domain)  return[- ]?path  reverse[- ]?path  originator
    envelope[- ]from
    expediteur  emetteur  envoyeur  remitente  mittente  absender  remetente  \bbatv  backscatter  dns mx or a/aaaa
""")
"""Any word for the sender; the last one is how GMX speaks of a sender's domain without records."""
