"""The words of replies: a plain form to match, and the vocabulary that the rules are written in.

Servers say the same few things in many sentences, so the rules match grammar: a noun that names the
mailbox with a predicate that says it is not there, against words about the client, the sender or a
policy. Whoever quotes addresses, hosts or links in between must not sway that, so they are masked.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

__all__ = [
    "ABSENT",
    "CAPACITY",
    "CLIENT",
    "CLOSED",
    "DOMAIN_TROUBLE",
    "FULL",
    "LATER",
    "NO_MAILBOX",
    "NO_SUCH",
    "REFUSED",
    "SERVER_TROUBLE",
    "US",
    "Wording",
    "any_of",
    "read_wording",
]

MAX_TEXT = 2048  # a reason is given in the first sentences; the rest is links and help


class Wording(NamedTuple):
    """A reply's text in the two forms that rules match.

    Attributes
    ----------
    raw : str
        Lower case, without accents, addresses masked; names of lists and links are found here.
    plain : str
        The same with IP addresses and links masked too and clauses of no account removed.
    """

    raw: str
    plain: str


def any_of(*patterns: str) -> str:
    """Join alternatives."""
    return "(?:" + "|".join(patterns) + ")"


LINK = r"(?:https?://|\bwww\.)\S+"
ADDRESS = r"<?(?:\"[^\"]{0,64}\"|[^\s<>\"@(),;:\[\]]{1,64})@[^\s<>(),;:\"]{1,255}>?"
LINK_OR_ADDRESS = re.compile(rf"({LINK})|{ADDRESS}")
MASKS = tuple(
    (re.compile(pattern), token)
    for pattern, token in (
        (LINK, "xurlx"),
        (r"<>", "xnullx"),
        (r"\[?\b\d{1,3}(?:\.\d{1,3}){3}\b\]?", " xipx "),  # also in "banned sender[192.0.2.7]"
        (r"\[?(?:ipv6:)?(?<![\w:])[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){3,7}\]?", " xipx "),
        # Names of hosts; two labels may be a sentence that ends without a blank, and Exchange's words have dots too.
        (r"\b(?!resolver\.|storedrv\.)(?:[a-z0-9_-]+\.){2,}[a-z][a-z0-9-]*\b", "xhostx"),
        (r"[_\s]+", " "),  # AT&T writes DNSBL:ATTRBL_521<_192.0.2.7_>_is_blocked
    )
)

# Clauses that hold a word about us and are not about us; each with what takes its place.
OF_NO_ACCOUNT = tuple(
    (re.compile(pattern), token)
    for pattern, token in (
        (r"relay[- ](?:recipient|domain)[- ](?:table|map)s?", "table"),  # Postfix: the recipient is not in it
        (r"relay= ?\S+", ""),  # AT&T names the client so
        (r"you do not have authori[sz]ation to see it", ""),  # Cyrus, of a mailbox that is not there
        (r"\(in reply to (?:rcpt to|(?:end of )?data)[^)]*\)?", ""),  # Postfix, quoting the server behind
        (r"message was not accepted -- ", ""),  # Mail.ru begins every refusal so
        (r"please (?:re-?|double-?)?(?:check|verify)(?:ing)? [^.;]{0,80}", ""),
        (
            r"(?<!your )(?<!sender )(?<!sending )(?<!sender's )\b(account|mail ?box|compte(?: du destinataire)?|boite\w*"
            r"|cuenta|casella|buzon|conta|postfach|konto) (?:is|has been|was|est|a ete|esta|e|ist|wurde)"
            r"(?: \w+)? (?:blocked|locked|bloquee?|bloquead[oa]|bloccat[oa]|gesperrt)(?: due to inactivity)?",
            r"\1 is disabled",
        ),  # La Poste, Free: blocked is the recipient's account, not we
    )
)


def read_wording(text: str) -> Wording:
    """Fold case and accents, mask what is quoted.

    >>> read_wording("<Ada@Example.org>: Boîte bloquée, see http://x.example/?u=NoSuchUser").plain
    'xaddrx: boite bloquee, see xurlx'
    """
    raw = LINK_OR_ADDRESS.sub(lambda match: match[1] or "xaddrx", fold(text[:MAX_TEXT]))
    plain = raw
    for pattern, token in (*MASKS, *OF_NO_ACCOUNT):
        plain = pattern.sub(token, plain)
    return Wording(raw, plain)


def fold(text: str) -> str:
    """Lower case without accents, with one kind of apostrophe."""
    spread = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in spread if not unicodedata.combining(c)).translate(APOSTROPHES)


APOSTROPHES = str.maketrans("\u2018\u2019\u00b4`", "''''")

# --- the mailbox and what can be wrong with it -------------------------------------------------
# Nouns that name a mailbox, in the languages whose servers answer in their own.
BOX = any_of(
    r"users?(?: ?name| ?id)?", r"recipients?", r"accounts?", r"address(?:es|ee)?", r"mail ?box(?:es)?", r"mailbox",
    r"in-?box", r"mail ?drop", r"alias(?:es)?", r"customer", r"subscriber", r"person", r"local[- ]?part", r"rcpt",
    r"e-?mail ?(?:id|box)", r"employee", r"student", r"xaddrx",
    r"utilisateur", r"destinataires?", r"adresse", r"compte", r"boite(?: aux lettres| mail)?", r"abonne",
    r"usuario", r"destinatario", r"cuenta", r"direccion", r"buzon", r"casilla",
    r"utente", r"casella", r"indirizzo",
    r"benutzer", r"nutzer", r"empfa(?:e)?nger(?:adresse)?", r"postfach", r"konto", r"teilnehmer", r"kunde", r"anwender",
    r"utilizador", r"conta", r"caixa(?: postal| de correio)?", r"endereco",
    r"gebruiker", r"ontvanger", r"uzytkownik", r"skrzynka", r"konto", r"adres", r"пользовател[ья]", r"ящик",
)  # fmt: skip
# Between noun and predicate: a few words, but no other noun that the predicate could belong to.
OTHER = (
    r"domain|host|server|dns|mx|sender|client|ip|relay|helo|ehlo|dominio|domaine|file|route|record|key|certificate|list|policy|transport"
    r"|service|error|lookup|database|rule|connection|channel|session|command|message|may|might"
)
GAP = rf"(?:(?!\b(?:{OTHER})\b)[^.;!?]){{0,48}}?"
# An adjective that goes on with another noun is not the mailbox's: "<x@example.org>: invalid argument".
ALONE = (
    r"\b(?! (?:error|command|argument|parameter|host|domain|helo|ehlo|syntax|reason|option|sender|client|failure|response|data|character"
    r"|format|reverse|protocol|server|network|certificate|request|sequence|message|content|header|mx|dns|ip|relay|source|service|encoding|tls))"
)
NOT_THERE = any_of(
    r"unknown", r"not known", r"not found", r"notfound", r"(?:could|can) ?not be (?:found|located)",
    r"(?:does|do|did)(?: not|n't| nt) (?:currently )?exist", r"not exists?", r"not existing", r"non-? ?exist(?:ent|ing|ant)?",
    r"no longer (?:exists?|valid|in use|with|works?|employed|here|on (?:this|our))",
    r"not (?:a )?(?:valid|recogni[sz]ed|registered|listed|known|defined|present|a local|local to|here)",
    r"invalid", r"undeliverable", r"unrout(?:e)?able", r"illegal", r"misspelled", r"is (?:bad|wrong|incorrect)",
    r"has (?:left|moved)", r"moved",
    r"inconnue?s?", r"inexistante?s?", r"introuvables?", r"n'existe (?:pas|plus)", r"invalides?", r"non trouvee?",
    r"desconocid[oa]s?", r"inexistentes?", r"no existe", r"no encontrad[oa]", r"no valid[oa]", r"invalid[oa]",
    r"sconosciut[oa]", r"non esiste", r"non trovat[oa]", r"non valid[oa]",
    r"unbekannt\w*", r"nicht bekannt", r"existiert nicht", r"nicht gefunden", r"nicht vorhanden", r"ungu(?:e)?ltig\w*",
    r"nicht (?:mehr )?(?:gu(?:e)?ltig|existent)", r"unzustellbar",
    r"desconhecid[oa]", r"nao existe", r"nao encontrad[oa]", r"nao valid[oa]",
    r"onbekend\w*", r"bestaat niet", r"nie istnieje", r"nieznany", r"не найден\w*", r"не существует",
)  # fmt: skip
SHUT = any_of(
    r"inactive", r"disabled", r"deactivated", r"suspended", r"deleted", r"removed", r"closed", r"cancell?ed",
    r"terminated", r"expired", r"discontinued", r"retired", r"abandoned", r"dormant", r"frozen", r"archived",
    r"not active", r"no longer (?:active|available|accepts?|accepting|monitored)", r"not enabled", r"not activated",
    r"desactivee?s?", r"suspendue?s?", r"fermee?s?", r"expiree?s?", r"supprimee?s?", r"archivee?s?", r"n'est plus \w+",
    r"desactivad[oa]", r"deshabilitad[oa]", r"inactiv[oa]", r"suspendid[oa]", r"cancelad[oa]", r"cerrad[oa]",
    r"dad[oa] de baja",
    r"disabilitat[oa]", r"disattivat[oa]", r"inattiv[oa]", r"sospes[oa]", r"chius[oa]", r"scadut[oa]", r"cessat[oa]",
    r"deaktiviert", r"stillgelegt", r"inaktiv", r"gelo(?:e)?scht", r"abgelaufen", r"nicht (?:mehr )?aktiv", r"gesperrt",
    r"desativad[oa]", r"desabilitad[oa]", r"inativ[oa]", r"suspens[oa]", r"encerrad[oa]", r"removid[oa]",
)  # fmt: skip
QUALIFIER = r"(?:(?:such|valid|known|local|active|existing|e-?mail|mail|matching|more|longer an?|destination|rcpt to) )"
NO_SUCH = any_of(
    rf"\bno (?!(?:valid )?recipients\b){QUALIFIER}*{BOX}\b(?! (?:given|specified|have|has|were))",
    rf"\bno such (?:one|name|{BOX})",
    rf"\b(?:not|isn't) (?:a|an|one of our|our|my) {QUALIFIER}*{BOX}\b",
    rf"\b(?:unknown|invalid|bad|non-?exist(?:ent|ing)|unrout(?:e)?able|undeliverable|illegal|wrong|incorrect)"
    rf"(?: or \w+)?[- ]{QUALIFIER}*(?:destination )?{BOX}\b(?! (?:name|names) or password)",
    rf"\b(?:does|do)(?: not|n't) have (?:a|an|any)(?: \S+){{0,3}}? {BOX}",
    r"\b(?:nobody|no[- ]one|no person) (?:here|by that name)",
    r"\bnot (?:listed|found) in (?:the |our )?(?:public |domino |recipient |user |address )*(?:directory|address book|name)",
    r"\bnot in (?:the |our )?(?:recipient|user|address)\w* (?:list|map|database|table|directory)",
    r"\b(?:can'?t|can ?not|could ?n[o']t|unable to) (?:find|locate) (?:the |a |that |this |your )?" + QUALIFIER + rf"*{BOX}",
    r"resolver\.adr\.\w*notfound",
    rf"\b(?:aucun|pas d[e']) ?{BOX}",
    rf"\bkein\w* (?:\w+ )?{BOX}",
    rf"\bunbekannte\w* {BOX}",
    rf"\bungu(?:e)?ltige\w* {BOX}",
    rf"\bonbekende {BOX}",
    rf"\bning[u]n {BOX}|\bnenhum {BOX}|\bnessun {BOX}",
    r"\bnie ma takiego (?:uzytkownika|konta|adresu)",
)  # fmt: skip
ABSENT = any_of(NO_SUCH, rf"\b{BOX}\b{GAP}\b{NOT_THERE}{ALONE}")
CLOSED = any_of(
    rf"\b{BOX}\b{GAP}\b{SHUT}{ALONE}",
    r"due to (?:extended )?inactivity",
    rf"\b(?:inactive|disabled|suspended|expired|closed|deleted|deactivated|archived) {QUALIFIER}*{BOX}\b",
)

FULL = any_of(
    r"over ?quota", r"over the (?:\w+ )?quota", r"\bquota[^.;]{0,30}\b(?:exceed|exced|full|reached|violat|depass|superat|uberschritten)",
    r"exceed\w*[^.;]{0,40}\b(?:quota|storage|allocation|mailbox size|disk)",
    r"\b(?:mail ?box|in-?box|account|storage|folder|mail ?folder|maildir|user|recipient|mail ?drop|xaddrx)\b[^.;]{0,40}\b(?:is |are )?(?:too )?full\b",
    r"\bfull (?:mail ?box|in-?box)", r"mailbox (?:size|storage) (?:limit|exceed)", r"mailbox[^.;]{0,30} (?:over|exceed\w*)[^.;]{0,20}limit",
    r"out of (?:storage|space|quota|disk space|mailbox space)",
    r"(?:insufficient|not enough|no) (?:mailbox|user|account|recipient)? ?(?:storage|space|quota|room)[^.;]{0,30}(?:mailbox|user|account|recipient|left)",
    r"insufficient (?:mailbox|user|account|recipient)",
    r"\b(?:boite|bal|compte)\b[^.;]{0,40}\b(?:pleine?|saturee?)\b", r"quota depasse",
    r"\b(?:buzon|casilla|cuenta)\b[^.;]{0,40}\b(?:llen[oa]|excedid[oa]|sin espacio)\b", r"cuota[^.;]{0,20}(?:excedid|superad)",
    r"\bcasella\b[^.;]{0,40}\b(?:pien[oa]|esaurit[oa])\b", r"spazio[^.;]{0,20}(?:esaurito|insufficiente)",
    r"\b(?:postfach|mailbox|konto|speicher)\b[^.;]{0,40}\b(?:voll|u(?:e)?berfu(?:e)?llt|erscho(?:e)?pft)\b", r"u(?:e)?berschritten",
    r"\b(?:caixa|conta)\b[^.;]{0,40}\b(?:cheia|lotada|excedid[oa])\b",
)  # fmt: skip

DOMAIN_TROUBLE = any_of(
    r"\b(?:domain|host(?:name)?|mx|name server|dns)\b[^.;]{0,30}\b(?:not found|unknown|does ?n[o']t exist|not exist|invalid"
    r"|not (?:local|hosted|served|handled|accepted|configured|here)|lookup|unresolv\w*|suspended|disabled|expired)",
    r"\b(?:unknown|invalid|no such|bad|unrout(?:e)?able|non-?existent|valid) (?!in |at |on |for )(?:\w+ )?(?:domain|host|mx)\b",
    r"find (?:the|a) (?:recipient |valid )?(?:domain|mx|host)",
    r"loops? back", r"name service error", r"all relevant mx records",
)  # fmt: skip

# --- we: the client, the sender, what a policy says of us --------------------------------------
CLIENT = any_of(
    r"\bips?\b", r"\bipv[46]\b", r"\bip[- ]?addr\w*", r"\bclient\b", r"\bmta\b", r"\bnetwork\b", r"connections? from",
    r"\b(?:your|sending|remote|connecting|source|originating|this|sender'?s) (?:mail ?)?(?:host|server|system|machine|isp|provider|site|gateway|hostname|smtp)\w*",
)  # fmt: skip
REFUSED = any_of(
    r"block(?:ed|ing|s)?\b", r"banned", r"den(?:y|ied)\b", r"refus\w+", r"reject\w*", r"black-? ?list\w*", r"block-? ?list\w*",
    r"not (?:been )?(?:allowed|permitted|authori[sz]ed|accepted|welcome|trusted|in (?:the |our )?(?:white|allow)-?list)",
    r"not in whitelist", r"unauthori[sz]ed", r"restricted", r"prohibited", r"throttl\w+", r"rate[- ]limit\w*", r"limited",
    r"deferred", r"suspended", r"forbidden", r"bloque\w*", r"gesperrt", r"bloccat\w+", r"rifiutat\w+", r"bloquead\w+",
    r"rechazad\w+", r"rejeitad\w+", r"abgelehnt", r"abgewiesen",
)  # fmt: skip
US = any_of(
    r"\bsend(?:er|ing)", r"mail ?from\b", r"\bfrom address", r"return[- ]?path", r"reverse[- ]?path", r"originat", r"envelope[- ]from",
    r"\bhelo\b", r"\behlo\b", r"\bspf\b", r"\bdkim\b", r"\bdmarc\b", r"\brelay", r"relais", r"polic(?:y|ies)", r"politi(?:que|ca)",
    r"richtlinie", r"(?:black|block|white|deny|allow|reject|gr[ae]y)[- ]?list", r"\brbl", r"dnsbl", r"spam", r"unsolicited", r"\bjunk\b",
    r"\bbulk\b", r"virus", r"malware", r"phish", r"reputation", r"\bblock(?:ed|ing|s)?\b", r"\bbanned\b", r"\bdenied\b", r"\brefused by",
    r"prohibit", r"forbidden", r"restrict", r"unauthori[sz]ed", r"not (?:authori[sz]ed|allowed|permitted)", r"permission",
    r"authenticat", r"\bauth\b", r"credential", r"password", r"\bips?\b", r"\bipv[46]\b", r"\bclient\b", r"\brdns\b", r"\bptr\b",
    r"host ?name", r"\byour (?!message|mail\b(?! ?server)|e-?mail (?:to|(?:could not|cannot) be delivered)\b|recipient|intended|envelope recipient|letter)",
    r"\byou (?:claim|send|use)\b", r"\bsubmit", r"\bposters?\b", r"\breply[- ]?(?:to|address)", r"return(?:ed)? address", r"\bgateway",
    r"\bconnecting ", r"\bremote (?!server (?:returned|said))", r"\bhost \(?xipx",
    r"too (?:many|much)", r"\brate\b", r"\blimit", r"throttl", r"frequen", r"volume", r"abus", r"suspicious", r"suspect", r"security",
    r"prefer", r"external", r"internal", r"only accept", r"refuses", r"not (?:currently )?accepting", r"protected by", r"spoof", r"forged?\b",
    r"\bbatv", r"backscatter", r"\bdsns?\b", r"used to send", r"\bto send\b", r"you are sending", r"\byou(?:'re| are) not\b", r"members?[- ]only",
    r"\baddr\w*:? \(?xipx", r"\b(?:server|host|machine|network|system)'?s? (?:address|name|ip)\b", r"certificate", r"\btls\b", r"complian", r"quarantin", r"\bbounce", r"content",
    r"expediteur", r"emetteur", r"remitente", r"mittente", r"absender", r"remetente", r"envoyeur", r"adresse ip", r"not accept",
    r"\bse?u[as]? (?:ip|direccion|servidor|dominio|cuenta|correo|usuario|conta|endereco)\b", r"\b(?:votre|vos|ton)\b(?! message)", r"\b(?:ihre?|deine?)\b",
    r"\b(?:tuo|suo|vostro)\b",
)  # fmt: skip
CAPACITY = any_of(
    r"too many (?:\w+ ){0,3}(?:connections?|sessions?|errors?|processes|commands|transactions|messages (?:in|per|this|on))",
    r"(?:connection|session)s?[- ](?:rate |count )?limit", r"connection rate", r"(?:max\w*|number of)[^.;]{0,30}(?:connections|sessions)",
    r"concurrent (?:\w+ )?(?:connections|sessions)", r"slow(?:ing)? down", r"overload", r"load (?:average )?(?:is )?too high",
    r"server ports are busy", r"max\w* messages? per (?:connection|session)", r"trop de connexions", r"demasiadas conexiones", r"zu viele verbindungen", r"troppe connessioni",
    r"muitas conexoes", r"\bhl:i[cf]c\b",
)  # fmt: skip

# --- not now -----------------------------------------------------------------------------------
SERVER_TROUBLE = any_of(
    r"\b(?:server|internal|local|system|lookup|look-up|database|db|ldap|dns|directory|resolver|alias|disk|memory|resources?|storage"
    r"|configuration|backend|i/o|file ?system|queue|mail system|map|table|verification|validation)s?\b[^.;]{0,24}\b(?:errors?|problems?|fail\w*|trouble|issues?|unavailable"
    r"|exhausted|insufficient|full|down|not available|timed? ?out|corrupt\w*|crash\w*)",
    r"insufficient (?:system|disk|memory|resource|storage)\w*", r"(?:error|problem) in processing", r"timed? ?out", r"\bbusy\b",
    r"out of memory", r"shutting down", r"maintenance", r"unable to (?:lookup|look up|verify|connect|contact)",
    r"(?:could|can) ?not (?:be )?(?:connect|contact|complet|verif|load|open|access)\w*",
)  # fmt: skip
LATER = any_of(
    r"\blater\b", r"try (?:it )?again", r"\bretry", r"come back", r"\bdeferr?ed", r"please wait", r"try (?:in|after)",
    r"(?:temporar\w+|currently|momentarily) (?:unavailable|deferred|reject\w*|refus\w*|unable|fail\w*|not available|delayed)",
    r"plus tard", r"reessayer", r"mas tarde", r"intentelo", r"piu tardi", r"riprov", r"spa(?:e)?ter", r"mais tarde",
)  # fmt: skip

# What a code alone does not make a refusal of the mailbox: the text is about the message or the session.
NO_MAILBOX = any_of(
    r"\b(?:message|mail|connection|transaction|service|session|command|attachment|e-?mail)s?\b[^.;]{0,30}\b(?:reject|refus|unavailable|not accept|fail"
    r"|declin|discard|rejet)",
    r"go away", r"temporar", r"\b(?:domain|host|list|argument|parameter)\b", LATER, SERVER_TROUBLE,
)  # fmt: skip
