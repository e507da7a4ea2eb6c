"""Rows about the session, the client and the sender: refusals that say nothing of the mailbox.

Order is precedence; see `mailverdict.checks.smtp.rules`.
"""

from __future__ import annotations

from ...model.words import Reason
from .finding import Action
from .rule import Rule, Sample
from .wording import ABSENT, CAPACITY, CLIENT, CLOSED, LATER, REFUSED, US

__all__ = ["US_RULES"]

TRANSIENT = "4.."
PERMANENT = "5.."
HOSTILE = r"reputation|black|block|spam|abus|unsolicited|banned|unusual|suspicious"
NESTED = r"(?:said|says|was|respon\w+|repl\w+|answer\w*|return\w*|fail\w*|error|\(xaddrx)[ :\"']{1,3}5\d\d[ -]+"

# a to d: replies that speak of the recipient in a way no later row may misread.
SPECIAL_RULES = (
    Rule(
        "null_mx",
        Reason.NO_MX_RECORD,
        Sample("rcpt", 556, "5.1.10", "Recipient address has null MX"),
        "RFC 7505 4.2",
        code="556",
    ),
    Rule(
        "null_mx_words",
        Reason.NO_MX_RECORD,
        Sample("rcpt", 550, "5.1.10", "<x@example.org>: Recipient address rejected: Domain example.org does not accept mail (nullMX)"),
        "Postfix",
        code=PERMANENT,
        phases="rcpt",
        says=r"null ?mx",
        unless=r"sender|from",
    ),
    Rule(
        "host_takes_no_mail",
        Reason.NO_MX_RECORD,
        Sample("banner", 521, "", "mx.example.org does not accept mail"),
        "RFC 7504; of a domain only if all its exchanges say so",
        code="521",
        says=r"(?:does|do|will)(?: not|n't) (?:accept|receive) (?:any |incoming )?(?:e-?)?mail|accepts no mail",
        unless=rf"your|xipx|{CLIENT}",
    ),
    Rule(
        "recipient_rate",
        None,
        Sample("rcpt", 450, "4.2.1", "The user you are trying to contact is receiving mail at a rate that prevents additional messages"),
        "Gmail, Outlook.com, Yandex, iCloud: a limit of the recipient's own proves the mailbox",
        phases="rcpt",
        says=r"(?:user|recipient|mailbox|account)\b[^.;]{0,40} is receiving (?:mail|messages|e-?mail)"
        r"|recipient has exceeded [^.;]{0,20}\b(?:limit|rate)|messages? to xaddrx deferred due to excessive volume"
        r"|too many messages (?:to|for) (?:this|the) (?:recipient|user|mailbox)",
        unless=r"quota|storage|size|disk|space|full",
    ),
    Rule(
        "tls_demanded",
        Reason.INCONCLUSIVE,
        Sample("mail", 530, "5.7.0", "Must issue a STARTTLS command first"),
        "RFC 3207 4; Postfix, Exchange",
        says=r"\bstarttls\b|(?:requires?|must (?:use|issue|support)|needs?|needed|only accept\w*|without|please use|over) [^.;]{0,40}"
        r"\b(?:tls|ssl|encryption|encrypted|secure (?:connection|channel))\b"
        r"|\b(?:tls|ssl|encryption|secure connection)\b[^.;]{0,30}\b(?:required|needed|mandatory)",
        error_code="TLS_REQUIRED",
        action=Action.USE_TLS,
    ),
    Rule(
        "tls_demanded_code",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 554, "5.7.10", "Encryption"),
        "RFC 7817 x.7.10",
        enhanced=r"[45]\.7\.10",
        error_code="TLS_REQUIRED",
        action=Action.USE_TLS,
    ),
    Rule(
        "smtputf8_code",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 553, "5.6.7", "Address not allowed"),
        "RFC 6531 3.5",
        enhanced=r"[45]\.6\.7",
        error_code="SMTPUTF8_REQUIRED",
        action=Action.USE_SMTPUTF8,
    ),
    Rule(
        "smtputf8_words",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 553, "", "SMTPUTF8 is required, but was not offered by the sender"),
        "Postfix, Exim",
        says=r"smtputf8|\b(?:non-?ascii|internationali[sz]ed|utf-?8)\b[^.;]{0,40}\b(?:address|mailbox|recipient|envelope|local)",
        error_code="SMTPUTF8_REQUIRED",
        action=Action.USE_SMTPUTF8,
    ),
    Rule(
        "sender_callout",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 550, "", "Verification failed for <v@example.com> No Such User Here Sender verify failed"),
        "Exim and Postfix asking our sender's exchange: its 'no such user' is not about the recipient",
        says=r"(?:\bsender|call-?out|call-?back|return[- ]path|reverse[- ]path|mail from)\b[^;]{0,80}\bverif|\bverif\w+[^.;]{0,40}\bsender"
        r"|call-?out|call-?back|sender address rejected: un",
        unless=r"recipient (?:verif\w+ )?(?:call-?out|verif)",
    ),
    Rule(
        "verification_in_progress",
        Reason.GREYLISTED,
        Sample("rcpt", 450, "4.1.1", "<x@example.org>: Recipient address rejected: unverified address: Address verification in progress"),
        "Postfix, Proofpoint: they ask the next server meanwhile",
        code=TRANSIENT,
        phases="rcpt",
        says=r"verification in progress",
        retry_after=20.0,
    ),
    Rule(
        "nested_unknown",
        Reason.MAILBOX_NOT_FOUND,
        Sample(
            "rcpt",
            450,
            "4.1.1",
            "<x@example.org>: Recipient address rejected: undeliverable address: host mx.example.org[198.51.100.9] "
            "said: 550 5.1.1 <x@example.org>: User unknown (in reply to RCPT TO command)",
        ),
        "Postfix address verification: the permanent reply of the server behind wins over the outer code",
        phases="rcpt",
        says=rf"{NESTED}(?:#?5\.(?:1\.[136]|1\.10|2\.1)\b|[^;]{{0,160}}?{ABSENT}|[^;]{{0,160}}?{CLOSED})"
        rf"|undeliverable address: (?:unknown user|user unknown|no such user)",
        unless=US,
    ),
    Rule(
        "nested_trouble",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 450, "4.1.1", "<x@example.org>: Recipient address rejected: unverified address: connect to mx[192.0.2.1]:25: Connection refused"),
        "Postfix address verification that could not ask the server behind",
        phases="rcpt",
        says=r"un(?:deliverable|verified) address: \S|\bsaid: 5\d\d",
    ),
)

# e, f, g: capacity, greylisting, and the grammar in which Postfix says what it rejected.
HABIT_RULES = (
    Rule(
        "client_code",
        Reason.PROTECTED,
        Sample("rcpt", 550, "5.7.606", "Access denied, banned sending IP [192.0.2.7]"),
        "Exchange Online 5.7.6xx-8xx and 4.7.5xx-6xx; RFC 7372 x.7.25 reverse DNS",
        enhanced=r"5\.7\.[678]\d\d|4\.7\.[56]\d\d|[45]\.7\.25",
    ),
    Rule(
        "one_domain",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 451, "4.3.0", "Multiple destination domains per transaction is unsupported. Please try again."),
        "Google, where hosted domains share one exchange",
        phases="mail rcpt",
        says=r"multiple (?:destination|recipient) domains|different domains|one domain (?:per|at)",
        action=Action.ONE_DOMAIN,
    ),
    Rule(
        "too_many_recipients",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 452, "4.5.3", "Error: too many recipients"),
        "RFC 5321 4.5.3.1.10; Outlook.com after the first recipient",
        phases="mail rcpt",
        says=r"too many (?:rcpts?|recipients)|recipients? (?:limit|count)|max\w* (?:number of )?recipients|multiple recipients|one recipient (?:at|per)",
        unless=r"\bsent\b|\bfrom\b|hour|minute|\bday\b|invalid|unknown|\bbad\b|non-?exist|xipx|your (?:ip|host|server)",
        action=Action.FEWER_RECIPIENTS,
    ),
    Rule(
        "too_many_recipients_code",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 452, "4.5.3", "Try again"),
        "RFC 3463 x.5.3",
        enhanced=r"[45]\.5\.3",
        phases="mail rcpt",
        unless=r"\bsent\b|\bfrom\b|hour|minute|\bday\b|invalid|unknown|\bbad\b|non-?exist|xipx|your (?:ip|host|server)",
        action=Action.FEWER_RECIPIENTS,
    ),
    Rule(
        "capacity",
        Reason.INCONCLUSIVE,
        Sample("mail", 452, "4.3.2", "Connection rate limit exceeded."),
        "Sendmail, Postfix anvil, Exchange: they would talk to us, only not to so many of us",
        says=CAPACITY,
        unless=HOSTILE,
        action=Action.BACK_OFF,
    ),
    Rule(
        "greylist",
        Reason.GREYLISTED,
        Sample("rcpt", 450, "4.2.0", "<x@example.com>: Recipient address rejected: Greylisted, see http://postgrey.example/help"),
        "Postgrey, milter-greylist, sqlgrey, Yahoo's [GL01]",
        code=TRANSIENT,
        says=r"gr[ea]y-? ?list|\[gl\d\d\]",
    ),
    Rule(
        "postfix_client",
        Reason.PROTECTED,
        Sample("rcpt", 554, "5.7.1", "<unknown[192.0.2.7]>: Client host rejected: Access denied"),
        "Postfix, smtpd_client_restrictions",
        says=r"client (?:host|address) rejected",
    ),
    Rule(
        "postfix_identity",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 504, "5.5.2", "<localhost>: Helo command rejected: need fully-qualified hostname"),
        "Postfix, smtpd_helo_restrictions and smtpd_sender_restrictions",
        says=r"(?:helo|ehlo) command rejected|sender address rejected",
    ),
)

LISTS = (
    r"spamhaus|spamcop|barracuda ?central|barracuda reputation|\bsorbs\b|abuseat|\bcbl\b|dns ?[bw]?l\b|dnsbl|dnsrbl|\brbls?\b|\brbl[+ -]|uceprotect"
    r"|psbl|invaluement|mailspike|nixspam|manitu|senderbase|sender ?score|trustedsource|cloudmark|talosintel|backscatterer|hostkarma"
    r"|junkemailfilter|njabl|spamrats|gbudb|mail-abuse|ers\.trendmicro|blackhole|ipcheck\.|spfbl|swinog|surriel|wpbl|lashback|ascams"
    r"|blocklist\.de|drbl|\bers-|abusix|\bxbl\b|\bpbl\b|\bsbl\b|0spam|ipadmin\.|blocked using|blocked by (?:\S+\.){2}"
)
IDENTITY = r"\b(?:sender|helo|ehlo|mail ?from|from|return[- ]path|envelope)(?:'s)?"
BLACKLIST = r"\b(?:black|block|deny|ban|reject|bad)[- ]?list(?:ed|ing|s)?\b"

# h: a list, a reverse name, a reputation, a rate: whose?
CLIENT_RULES = (
    Rule(
        "listed_domain",
        Reason.SENDER_BLOCKED,
        Sample("ehlo", 550, "5.7.1", "Service unavailable, Helo domain is listed in Spamhaus."),
        "Exchange Online, Postfix reject_rhsbl_sender: the list is one of domains",
        says=rf"{IDENTITY}[ -](?:address|domain|hostname)\b[^;]{{0,60}}\b(?:listed|blocked using|{BLACKLIST})"
        rf"|\bdomain\b[^.;]{{0,40}}(?:\blisted\b|{BLACKLIST})|{BLACKLIST}[^.;]{{0,20}}\bdomain\b",
        unless=r"\bip\b|client host",
    ),
    Rule(
        "listed_domain_zone",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 554, "5.7.1", "Service unavailable; Sender address [v@example.com] blocked using dbl.spamhaus.org"),
        "zones that hold domains only",
        names=r"\bdbl\.|rhsbl|\bsurbl|\buribl|\bmulti\.uribl|\bspamhaus dbl",
    ),
    Rule(
        "dns_list",
        Reason.PROTECTED,
        Sample("rcpt", 550, "5.7.1", "Service unavailable; client [192.0.2.7] blocked using b.barracudacentral.org"),
        "whoever asks a DNS list about our address",
        names=LISTS,
    ),
    Rule(
        "helo",
        Reason.SENDER_BLOCKED,
        Sample("ehlo", 501, "5.5.4", 'HELO/EHLO argument "local host" invalid, closing connection.'),
        "Gmail, Exim, Sendmail: our name, not our address",
        says=r"\b(?:helo|ehlo)\b",
        unless=r"(?:send|say|issue|polite|first)|black|reverse|\bptr\b|\bip\b",
    ),
    Rule(
        "reverse_dns",
        Reason.PROTECTED,
        Sample("banner", 421, "", "Refused. Your reverse DNS entry does not resolve to an IP."),
        "Free, Comcast, web.de, AOL",
        says=r"reverse[- ]?(?:dns|look-?up|resol\w+|host\w*|name|mapping|record|ip|zone|client|address)|\brdns\b|\bptrs?\b|fc-?rdns|forward[- ]?confirm"
        r"|cannot find your|ip name look|hostname look|(?:your|client|sending|remote|connecting) (?:\w+ ){0,2}[^.;]{0,40}\b(?:not|n't|unable to) resolve"
        r"|(?:dns|host ?name) (?:entry |record |found )?(?:for|of) (?:your|client|xipx)|no (?:valid )?(?:dns|host ?name) (?:entry|record|found)|(?:your|client|connecting) (?:host|ip|server)\w* (?:has no|without) (?:a )?(?:dns|name)",
    ),
    Rule(
        "dynamic_address",
        Reason.PROTECTED,
        Sample("mail", 550, "", "We do not accept mail from hosts with dynamic IP or generic DNS PTR-records."),
        "Mail.ru and others: access networks",
        says=r"\bdynamic(?:ally)?\b|dial-?up|residential|\ba?dsl\b|generic (?:ptr|r?dns|host)|end-?user (?:ip|net|range)|\bdul\b",
    ),
    Rule(
        "sender_reputation",
        Reason.SENDER_BLOCKED,
        Sample("mail", 550, "5.7.1", "likely suspicious due to the very low reputation of the sending domain"),
        "Gmail: the domain's reputation, not the address's",
        says=r"reputation[^.;]{0,40}\bdomain|\bdomain\b[^.;]{0,20}reputation",
    ),
    Rule(
        "sender_policy",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 550, "5.7.23", "Message rejected due to: SPF fail - not authorized"),
        "SPF, DKIM, DMARC: an address is named there only as what the domain did not allow",
        says=r"\bspf\b|\bdkim\b|\bdmarc\b|sender[- ]?id\b|domainkeys|openspf",
        unless=r"unusual rate",
    ),
    Rule(
        "sender_policy_code",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 550, "5.7.26", "This mail is unauthenticated"),
        "RFC 7372, RFC 7505 x.7.20-32; 25 is reverse DNS, and Gmail's 28 speaks of our address as well",
        enhanced=r"[45]\.7\.(?:2[0-46-79]|3[0-2])",
    ),
    Rule(
        "reputation",
        Reason.PROTECTED,
        Sample("banner", 554, "", "Your access to this mail system has been rejected due to the sending MTA's poor reputation."),
        "Cisco IronPort, Gmail, Outlook.com",
        says=r"reputation",
    ),
    Rule(
        "rate_of_sender",
        Reason.SENDER_BLOCKED,
        Sample("mail", 550, "", "Sender frequency limited"),
        "QQ, NetEase, Gmail per SPF or DKIM domain",
        says=r"\b(?:sender|spf|dkim|domain|from)\b[^.;]{0,40}\b(?:frequency|rate|volume|limit\w*|throttl\w*)",
        unless=r"\bip\b|xipx|recipient has|quota exceeded",
    ),
    Rule(
        "rate_of_client",
        Reason.PROTECTED,
        Sample("rcpt", 550, "5.1.1", "<x@example.com> - 192.0.2.7 has sent to too many recipients this hour. IB607 <http://x.co/rlbounce>"),
        "GoDaddy, QQ, Yahoo, NetEase: they count what comes from our address",
        says=r"unusual (?:rate|volume|amount)|too many (?:invalid|unknown|unwanted|bad|non-? ?existent|undeliverable|unsolicited|failed|wrong|incorrect|rejected)\b"
        r"|too many (?:recipients|messages|mails?|e-?mails?|rcpts?|users)\b[^.;]{0,40}(?:from|hour|minute|\bday|your|xipx|this (?:ip|host))"
        r"|sent to too many|too much mail|\brate\b[^.;]{0,12}(?:limit\w*|exceeded|control)|ratelimit|exceed\w*[^.;]{0,40}\b(?:rate|permitted limits|volume)"
        r"|frequency limit|throttl|dictionary attack|harvest|namespace mining|user complaints|unexpected volume|permanently deferred|excessive (?:rate|volume|number)"
        r"|\[tss?\d+\]|\bs31[45]0\b|\bhl:(?:rep|ipb)\b|\bib\d{3}[a-z]?\b",
        unless=r"recipient has|quota",
    ),
    Rule(
        "listed_client",
        Reason.PROTECTED,
        Sample("mail", 550, "", "part of their network is on our block list."),
        "Outlook.com S3150 and private lists",
        says=rf"{BLACKLIST}|xipx[^.;]{{0,30}}\blisted\b|\bip\b[^.;]{{0,30}}\blisted\b",
        unless=r"recipient'?s? black|by (?:the )?(?:recipient|user)",
    ),
    Rule(
        "refused_client",
        Reason.PROTECTED,
        Sample("rcpt", 554, "", "Host network not allowed - https://community.mimecast.com/docs/DOC-1369#554"),
        "Mimecast, Gmail, Yahoo: the client is named and refused",
        says=rf"{CLIENT}[^.;]{{0,60}}{REFUSED}|{REFUSED}[^.;]{{0,60}}{CLIENT}"
        r"|(?:block(?:ed|ing)|banned|denied|black-?listed|not allowed|refused)[^.;]{0,30} xipx|xipx[^.;]{0,20} (?:blocked|banned|denied|refused|(?:is )?not (?:allowed|permitted|welcome|accepted))|messages? from \(?xipx"
        r"|\bip[ -]based|\bip\b[^.;]{0,30} not (?:in|on) |found on (?:a|an|our|one of)",
        unless=r"(?:to|as a|open|unable to) relay|relaying|relay (?:access|denied|not|through)|recipient preferences",
    ),
    Rule(
        "refused_place",
        Reason.PROTECTED,
        Sample("rcpt", 554, "5.7.1", "Connections from your country are not accepted"),
        "filters by geography",
        says=r"\b(?:country|countries|geo-?\w*|region)\b[^.;]{0,60}"
        rf"{REFUSED}|{REFUSED}[^.;]{{0,40}}\b(?:country|countries|region)\b",
    ),
    Rule(
        "refused_access",
        Reason.PROTECTED,
        Sample("mail", 501, "", "Connection rejected by policy [7.7] 38101, please visit www.example.com"),
        "MessageLabs, IronPort, iCloud: they do not talk to us",
        enhanced=r"(?!.\.4\.).*",
        says=r"not accepting (?:connections|mail from (?:you|your|this))|connections? (?:will not be |not |is not |are not )?(?:accepted|rejected|denied|blocked|refused)"
        r"|your access|access (?:from|for) (?:you|your|this)|no smtp (?:service|access)|spam source|open prox|compromised|botnet|infected|zombie|tor exit",
        unless=r"relay",
    ),
    Rule(
        "abuse_from_client",
        Reason.PROTECTED,
        Sample("mail", 550, "", "Client host blocked for spamming issues, 192.0.2.7"),
        "Orange, Gmail: spam seen from our address",
        says=rf"(?:unsolicited|spam\w*|abus\w+|suspicious|malicious)[^;]{{0,80}}(?:{CLIENT}|xipx)|(?:{CLIENT}|xipx)[^;]{{0,80}}(?:unsolicited|spam\w*|abus\w+)",
    ),
)

# Relaying, authentication, our sender: always sender_blocked, even beside words about a mailbox.
IDENTITY_RULES = (
    Rule(
        "bad_sequence",
        Reason.INCONCLUSIVE,
        Sample("rcpt", 503, "5.5.1", "Error: need MAIL command"),
        "RFC 5321 4.2.2: our protocol state, after a refused MAIL for one",
        code="503",
        says=r"\bneed|first|sequence|preced|already|nested|not yet|command",
        unless=r"auth|log ?in|relay",
    ),
    Rule(
        "relaying",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 454, "4.7.1", "<x@example.org>: Relay access denied"),
        "the exchange does not serve the domain: it says nothing of the mailbox",
        phases="mail rcpt",
        says=r"\brelay|relais|rcpthosts|gateway for|(?:domain|recipient domain) (?:is )?not (?:hosted|local|served|handled|accepted|in my)"
        r"|non-accepted domain|not a (?:local|hosted) domain|don't (?:accept|handle|host)[^.;]{0,20} domain",
    ),
    Rule(
        "authentication",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 530, "5.7.57", "SMTP; Client was not authenticated to send anonymous mail during MAIL FROM"),
        "submission servers and internal exchanges",
        says=r"authenticat|\bauth\b|log ?in (?:first|to|before)|pop3? before",
        unless=r"(?:temporary|server|internal|backend) authentication (?:failure|error|problem)",
    ),
    Rule(
        "sender_code",
        Reason.SENDER_BLOCKED,
        Sample("mail", 553, "5.1.8", "<v@nodomain.example>... Domain does not exist"),
        "RFC 3463 x.1.7, x.1.8 sender's address; RFC 7372 x.7.28 mail flood of a domain",
        enhanced=r"[45]\.1\.[78]|[45]\.7\.28",
    ),
    Rule(
        "sender",
        Reason.SENDER_BLOCKED,
        Sample("rcpt", 553, "", "sorry, your envelope sender is in my badmailfrom list (#5.7.1)"),
        "any refusal that names the sender",
        says=r"\bsender|mail ?from\b|badmailfrom|from (?:address|domain)|return[- ]?path|reverse[- ]?path|originator|envelope[- ]from"
        r"|expediteur|emetteur|envoyeur|remitente|mittente|absender|remetente|\bbatv|backscatter|dns mx or a/aaaa",  # the last is GMX's
        unless=rf"gr[ea]y|temporary|{LATER}",
    ),
)

US_RULES: tuple[Rule, ...] = (*SPECIAL_RULES, *HABIT_RULES, *CLIENT_RULES, *IDENTITY_RULES)
