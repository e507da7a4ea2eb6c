"""Words about us: the client that connects, the sender it names, and what policies say of both.

Patterns of the folded and masked text.
"""

from __future__ import annotations

from .wording import phrases

__all__ = [
    "ABUSE",
    "ACCESS_NETWORK",
    "BLACKLIST",
    "CAPACITY",
    "CLIENT",
    "CLIENT_REFUSED",
    "DOMAIN_LISTED",
    "NAMED_LIST",
    "NO_ACCESS",
    "PLACE_REFUSED",
    "RATE",
    "RELAYING",
    "REVERSE_DNS",
    "SENDER",
    "US",
]

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
