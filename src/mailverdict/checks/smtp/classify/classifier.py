"""From a reply to its classification: normalize the text, find the first rule that matches. Pure.

In the text letters are folded, and what a server quotes (addresses, hosts, links) is masked,
because ``<no-such-user@example.org>`` says nothing about a mailbox.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ....model.evidence import Action, Classification
from ....model.words import Reason
from ..replies import Reply, find_enhanced_code
from .mailbox_words import LOCKED, MAILBOX_FULL_WORDS
from .other_words import CLIENT_OR_SENDER_WORDS
from .patterns import ReplyText, compile_pattern, find_letters, fold, fold_letters
from .rules import RULES, Rule, SearchedReply

PHASES = {
    **{phase: phase for phase in ("banner", "ehlo", "mail", "rcpt")},
    "greeting": "banner",
    "helo": "ehlo",
    "starttls": "ehlo",
    "mail_from": "mail",
    "rcpt_random": "rcpt",
    "data": "rcpt",  # never sent, but a server may name the recipient only there
}
ACCEPTED = Classification(None, "accepted")
PLAIN_OK = frozenset({250, 251, 252})
WAITABLE = frozenset(
    {Reason.GREYLISTED, Reason.PROTECTED, Reason.INCONCLUSIVE, Reason.SENDER_BLOCKED}
)


def classify(reply: Reply, *, phase: str) -> Reason | None:
    """Return the reason of a refusal, or None if the reply accepts.

    >>> classify(Reply(550, "5.1.1", "User unknown"), phase="rcpt").value
    'mailbox_not_found'
    >>> blocked = Reply(550, "5.7.1", "Client host blocked using zen.spamhaus.org")
    >>> classify(blocked, phase="rcpt").value
    'protected'
    >>> classify(Reply(250, "2.1.5", "Ok"), phase="rcpt") is None
    True
    """
    return classify_reply(reply, phase=phase).reason


def classify_reply(
    reply: Reply, *, phase: str, recipient: str = "", sender: str = ""
) -> Classification:
    """Classify a reply to one of ``PHASES``; only a reply to RCPT can give ``mailbox_not_found``.

    Replies that differ only in the recipient are normalized once. A reply that names the sender and
    not the recipient says nothing about the recipient's mailbox.

    >>> reply = Reply(451, "4.7.1", "Greylisted, try again in 300 seconds")
    >>> classify_reply(reply, phase="rcpt").retry_after
    300.0
    """
    if phase not in PHASES:
        raise ValueError(f"phase={phase!r}: one of {', '.join(sorted(PHASES))}")
    if reply.code in PLAIN_OK:
        return ACCEPTED
    given = reply.enhanced_code
    enhanced = (
        given
        if given and given[0] == str(reply.code)[0]
        else find_enhanced_code(reply.code, reply.text)
    )
    text = normalize_text(mask_recipient(reply.text, recipient))
    found = find_rule(PHASES[phase], reply.code, enhanced or "", text)
    if (
        found.reason is not Reason.MAILBOX_NOT_FOUND
        or not sender
        or recipient.lower() in reply.text.lower()
    ):
        return found
    return find_rule(
        PHASES[phase], reply.code, enhanced or "", normalize_text(mask_sender(reply.text, sender))
    )


def mask_sender(text: str, sender: str) -> str:
    """Replace the address of the sender by the word, which the rules know.

    >>> mask_sender("<Probe@client.example>: User unknown", "probe@client.example")
    'sender: User unknown'
    """
    return re.sub(
        rf"(?<![\w.+-])<?{re.escape(sender)}>?(?![\w-]|\.\w)", "sender", text, flags=re.IGNORECASE
    )


def prepare_rules() -> None:
    """Compile the patterns for ASCII texts, before servers wait for this process.

    It takes about half a second, once.
    """
    classify_reply(Reply(550, None, "-"), phase="rcpt")


@lru_cache(maxsize=1024)
def list_rules(phase: str, code: str, enhanced: str) -> tuple[Rule, ...]:
    """List the rules for a phase and codes.

    Cached, since few combinations occur and each has few rules.
    """
    return tuple(rule for rule in RULES if rule.applies(phase, code, enhanced))


@lru_cache(maxsize=4096)
def find_rule(phase: str, code: int, enhanced: str, text: ReplyText) -> Classification:
    """Apply the first rule that matches; cached, since a server repeats its replies."""
    searched = SearchedReply(text)
    quoted = find_quoted(text) if phase == "rcpt" else None
    rule = next(
        rule
        for rule in list_rules(phase, str(code), enhanced)
        if (not rule.quoted or quoted is rule.reason) and rule.matches(searched)
    )
    wait = find_wait(text.masked) if rule.reason in WAITABLE and code < 500 else None
    return Classification(
        rule.reason, rule.name, rule.error_code, rule.action, wait or rule.retry_after
    )


QUOTED_REPLY = re.compile(
    r"(?:\b(?:said|says|was|respon\w+|repl\w+|answer\w*|return\w*|fail\w*|error)|\(xaddrx"
    r"|\bhost \S+ xipx)"
    r"[ :\"']{1,3}(5\d\d)[ -]+(?:#?(5\.\d{1,3}\.\d{1,3})\b)?"
    r"|undeliverable address: (?!host|connect|lost|conversation)"
)
# The first test, since most replies quote nothing.
MAY_QUOTE = re.compile(r"5\d\d[ -]|undeliverable address")
ANOTHER_CAUSE = rf"{CLIENT_OR_SENDER_WORDS}|{MAILBOX_FULL_WORDS}"


def find_quoted(text: ReplyText) -> Reason | None:
    """Find the reason of the permanent reply that the server quotes from the next server.

    None if there is none.
    """
    quotations = [*QUOTED_REPLY.finditer(text.masked)] if MAY_QUOTE.search(text.masked) else []
    if not quotations:
        return None
    match = quotations[-1]  # the innermost
    outer = text.masked[: match.end()]
    found = compile_pattern(ANOTHER_CAUSE, find_letters(outer)).search(outer)
    if found is not None and found.start() < match.start():
        return None
    inner = text.masked[match.end() :]
    return find_rule("rcpt", int(match[1] or 550), match[2] or "", ReplyText(inner, inner)).reason


CATCH_ALL = {None: True, Reason.MAILBOX_NOT_FOUND: False}


def catch_all_of(classification: Classification) -> bool | None:
    """Whether a domain accepts every address, from the reply to a random local part.

    None if it could not be established.
    """
    return CATCH_ALL.get(classification.reason) if classification.action is Action.NONE else None


CLOCK = re.compile(r"\b(\d{1,2}):([0-5]\d):([0-5]\d)\b")
WAIT = re.compile(
    r"\b(?:in|after|for|within|wait|least|dans|apres|en|tra|dopo|nach|em|retry|another|next)\b"
    r"(?: (?:a|about|further|at least|next|approximately|the))*:? ?(\d{1,5}) ?"
    r"(seconds?|secs?|secondes?|segundos?|secondi|sekunden|s"
    r"|minutes?|mins?|minutos?|minuti|minuten|m"
    r"|hours?|heures?|horas?|ore|stunden|h)\b"
)
UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0, "o": 3600.0}
LONGEST_WAIT = 86400.0  # seconds


def find_wait(text: str) -> float | None:
    """Find the seconds that the server asks to wait.

    >>> find_wait("greylisting in action, please come back in 00:05:00")
    300.0
    """
    if match := WAIT.search(text):
        unit = "h" if match[2].startswith("stund") else match[2][0]
        return min(float(match[1]) * UNIT[unit], LONGEST_WAIT)
    if match := CLOCK.search(text):
        hours, minutes, seconds = (int(part) for part in match.groups())
        return hours * 3600.0 + minutes * 60.0 + seconds
    return None


# --- the text -------------------------------------------------------------------------------------

MAX_TEXT = 2048  # characters; a reason is given in the first sentences, the rest is links and help


@lru_cache(maxsize=1024)
def normalize_text(text: str) -> ReplyText:
    """Fold case and accents, and mask what is quoted; cached, since a server repeats its replies.

    >>> text = "<Ada@Example.org>: Boîte bloquée, see http://x.example/?u=NoSuchUser"
    >>> normalize_text(text).masked
    'xaddrx: boite bloquee, see xurlx'
    """
    unmasked = fold(text[:MAX_TEXT])
    if "@" in unmasked:
        unmasked = LINK_OR_ADDRESS.sub(lambda match: match[1] or "xaddrx", unmasked)
    masked = unmasked if unmasked.isascii() else SCRIPT_CHANGE.sub(" ", unmasked)
    for part, pattern, token in REPLACEMENTS:
        if part in masked:  # costs a fiftieth of the search, and few texts hold such a clause
            masked = pattern.sub(token, masked)
    return ReplyText(unmasked, masked)


MASKED_RECIPIENT = "<x@x>"


def mask_recipient(text: str, recipient: str) -> str:
    """Replace a recipient in angle brackets by another address.

    This is done only where `normalize_text` then returns the same.

    >>> mask_recipient("<ada@example.org>: User unknown", "ada@example.org")
    '<x@x>: User unknown'
    """
    quoted = f"<{recipient}>"
    if quoted not in text or len(text) > MAX_TEXT or not PLAIN_ADDRESS.fullmatch(recipient):
        return text
    # The recipient may be a part of what is masked.
    if '"' in text or "://" in text or "www." in text.lower():
        return text
    return text.replace(quoted, MASKED_RECIPIENT)


PLAIN_ADDRESS = re.compile(r"[A-Za-z0-9.+_-]{1,64}@[A-Za-z0-9.-]{1,255}")
# In texts without blanks a word in Latin letters has no end: "您的IP地址".
UNSPACED = r"\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff"
SCRIPT_CHANGE = re.compile(rf"(?<=[a-z0-9])(?=[{UNSPACED}])|(?<=[{UNSPACED}])(?=[a-z0-9])")
LINK = r"(?:https?://|\bwww\.)\S*[^\s.,;!?)]"
ADDRESS = (
    r"<?(?:\"[^\"]{0,64}\"|[^\s<>\"@(),;:\[\]]{1,64})@[^\s<>(),;:\"]{0,254}[^\s<>(),;:\".!?]>?"
)
LINK_OR_ADDRESS = re.compile(rf"({LINK})|{ADDRESS}")
MASKS = tuple(  # what each holds, itself, its replacement
    (part, re.compile(pattern), token)
    for part, pattern, token in (
        *((part, LINK, "xurlx") for part in ("://", "www.")),
        ("<>", r"<>", "xnullx"),
        (".", r"\[?\b\d{1,3}(?:\.\d{1,3}){3}\b\]?", " xipx "),  # also in "banned sender[192.0.2.7]"
        (":", r"(?<![\w:])\[?(?:ipv6:)?[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){3,7}\]?", " xipx "),
        (
            ".",
            r"(?:(?<=\bdomain )|(?<=\bhost )|(?<=\bserver ))"
            r"['\"(]?(?:[a-z0-9-]+\.)+[a-z]{2,}\b['\")]?",
            "xhostx",
        ),
        # Names of hosts; two labels may be the end of a sentence without a blank; Exchange's words
        # have dots too.
        (".", r"\b(?!resolver\.|storedrv\.)(?:[a-z0-9_-]+\.){2,}[a-z][a-z0-9-]*\b", "xhostx"),
        ("", r"[_\s]+", " "),  # AT&T writes DNSBL:ATTRBL_521<_192.0.2.7_>_is_blocked
    )
)

# "The recipient account is blocked", "cette boite est bloquee": the mailbox is, not the client (La
# Poste, Free).
NOT_THE_CLIENTS = r"(?<!your )(?<!sender )(?<!sending )(?<!sender's )"
ACCOUNT = (
    r"account|mail ?box|compte(?: du destinataire)?|boite\w*|cuenta|casella|buzon|conta"
    r"|postfach|konto"
)
IS = r"(?:is|has been|was|est|a ete|esta|e|ist|wurde)"
INACTIVITY = r"due to (?:\S+ )?inactivity"
IS_LOCKED = rf" {IS}((?: \w+)?) {LOCKED}(?! by (?:another|a) process)(?: due to inactivity)?"
# A mailbox is also locked while it is read, so that this word alone does not say that it is closed.
IN_USE = r"(?!mail ?box(?: \S+)? (?:is |was |has been )?locked\b(?! due to))"
CLOSED_ACCOUNT = rf"{NOT_THE_CLIENTS}\b{IN_USE}({ACCOUNT})(?:{IS_LOCKED}| {LOCKED} {INACTIVITY})"
CLOSED_FOR_ABUSE = (
    rf"{NOT_THE_CLIENTS}\b((?:{ACCOUNT}|user|recipient|address)(?: \S+){{0,2}}"
    r" (?:disabled|deactivated|suspended|closed|terminated|locked|deleted|cancell?ed))"
    r" due to (?:\w+ ){0,2}?"
    r"(?:abuse|spam\w*|fraud|policy violations?|(?:terms|tos) violations?|non-?payment)\b"
)
YOU_WRITE = (
    r"\b(?:that |which |whom? )?you(?:'re| are| have|'ve)? (?:currently |just )?"
    r"(?:try(?:ing)?|tried|attempt(?:ed|ing)?|want(?:ed)?|wish) to (?:reach|contact|e-?mail"
    r"|(?:send|write|deliver)"
    r"(?: (?:a|an|your|this|the) (?:message|e-?mail)| mail| e-?mail)?(?: to)?)\b"
)
# "User unknown, message not accepted": what follows from the cause, unless a cause follows.
REFUSED_MESSAGE = (
    r"\b(?:(?:the |your |this )?(?:message|e-?mail|mail)"
    r" (?:was |has been |is )?(?:not accepted|bounced)"
    r"|(?:we |i )?(?:cannot|can't|could not|will not|won't) accept"
    r" (?:it|(?:your|this|the) (?:message|e-?mail|mail)))\b"
    r"(?!,? (?:from|by|due|because|as|for|since|if|unless|to|without|with"
    r"|on|in|at|via|over|outside)\b)"
)
OWN_PLACE = (
    r" (?:at|on|in|by|of|to) (?:this|our) (?:mail ?|e-?mail )?"
    r"(?:site|system|server|machine|host|gateway)\b(?!'s)"
)
THIS_SERVER = fold_letters(
    r"(?: (?:na|w|v|u|n[ae]) (?:tomto|tejto|tym|tem|ovom|n[aá][sš]\w+) (?:\S+ )?serv?er\w*"
    r"| (?:на|у|в) (?:этом|данном|нашем|цьому|нашому|този|нашия|овом) (?:\S+ )?(?:сервер|сървър)\w*"
    r"| (?:op (?:deze|onze)|p[åa] (?:den h[äae]r|denne|v[åa]r)|auf diesem|sur ce|en este|neste"
    r"|su questo|pe acest|selles|šajā|šiame|(?:di|pada)) (?:mail|e-?post)?-?(?:serv\w+)(?: ini)?"
    r"| t[äa]ll[äa] palvelimella| ezen a szerveren| bu sunucuda| σε αυτόν? τον? διακομιστή"
    r"|(?<!العثور) على هذا الخادم"
    r"| בשרת (?:זה|הזה)| trên máy chủ này| در این سرور|在(?:此|本|该|該)(?:服务器|伺服器)[上中]?"
    r"|この(?:メール)?サーバー?上?に?は?|이 서버에(?:는)?|ในเซิร์ฟเวอร์นี้)"
)
# "If the user does not exist, contact the administrator": nothing is said of this user.
CONDITION = fold_letters(
    r"(^[\"'(]?|[.;:!?,)>-] ?|\bx(?:addr|host)x )"
    r"(?:(?:if (?:the|this|that|an?|such|no)|falls|wenn|sollte|als (?:de|het)|indien|hvis|dersom"
    r"|s[ie] (?:l'|il|lo|l[ae]|el|els|[oa]|ce|cett?e|este|esta|esse|questo|aquest\w*"
    r"|(?:usuari|destinat|utilis)\w*)"
    r"|caso [oa]|om (?:den|anv[äa]nd\w*|mottag\w*|adress\w*|konto\w*)"
    r"|jos|kui|jei(?:gu)?|je[śs]li|je[żz]eli|pokud|ja (?:lietot|adres|sa[ņn]em|pastk)\w*"
    r"|ak (?:po|pr|adr|sch)\w*|ako|[čc]e (?:uporab|prejem|naslov|predal)\w*"
    r"|ef (?:not|vi[ðd]|net)\w*|ha (?:az?|ez)|dac[ăa]|e[ğg]er|jika|apabila|kalau|n[ếe]u"
    r"|если|якщо|ако|егер|αν|εάν|თუ|եթե|اگر|إذا|אם)\b|如果|假如|若|यदि|अगर|หาก|ถ้า)[^.;!?,。、，]*(?:[.;!?,。、，]|$)"
)
CONDITION_BEFORE = fold_letters(r"[^.,。、，]*(?:場合|않으면|없으면|않는 경우|없는 경우)(?=.{4})")
SERVER_NAMES = (
    "serv", "palvelim", "sunucu", "сервер", "сървър", "διακομιστ", "خادم", "שרת", "may chu",
    "سرور", "服务器", "伺服器", "サーバ", "서버", "เซิร์ฟ",
)  # fmt: skip
# Clauses with a word for the client or the sender that are not about them: what each holds, itself,
# its replacement.
MISLEADING_CLAUSES = tuple(
    (part, re.compile(pattern), token)
    for part, pattern, token in (
        # Postfix: the recipient is not in it.
        (
            "relay",
            r"relay[- ](?:recipient|domain)[- ](?:table|map)s?",
            "table",
        ),
        ("relay=", r"relay= ?\S+", ""),  # AT&T: the client
        ("", CONDITION, r"\1if, "),
        *((fold_letters(part), CONDITION_BEFORE, "if, ") for part in ("場合", "으면", "경우")),
        # "No such user at this site": the place is the server, not the client.
        ("pas ou plus", r"pas ou plus\b", "pas"),
        *((part, OWN_PLACE, " here") for part in ("this", "our")),
        *((fold_letters(part), THIS_SERVER, "") for part in SERVER_NAMES),
        # Vendors sign their replies: "User unknown. Trend Micro Email Security".
        (
            "security",
            r"\b(?:e-?mail|cloud|internet) security\b(?! (?:polic|rule|reason|check|settings))",
            "",
        ),
        ("gateway user", r"\bgateway user", "user"),
        # RFC 3463 x.2.1.
        (
            "not accepting",
            r"(?<=disabled), not accepting (?:messages|mail)\b(?! from)",
            "",
        ),
        # Cyrus: the mailbox does not exist
        ("you do not have", r"(?:\bor )?you do not have authori[sz]ation to see it", ""),
        # Postfix, quoting the next server
        ("(in reply", r"\(in reply to (?:rcpt to|(?:end of )?data)[^)]*\)?", ""),
        ("xipx said", r"\bhost xipx xipx said", "said"),  # Postfix, if the next server has no name
        ("dsn generated by", r"\bdsn generated by:? ?\S*", ""),  # Exchange Online: the server
        ("giving up on", r"\bgiving up on \S+(?: xipx)?", ""),  # qmail: the server
        ("mail-box", r"\bmail-box", "mailbox"),
        ("mailaccount", r"\bmailaccount", "mail account"),
        # What becomes of the message, whatever the reason: nothing is said of the sender.
        (
            "return",
            r"(?:\b(?:message|mail) )?(?:(?:is|was|has been) )?"
            r"\breturn(?:ed)? to (?:the )?sender\b(?!'s)",
            "",
        ),
        # "You tried to send a message to a disabled mailbox": the sender is named, but nothing is
        # said of it.
        ("you ", YOU_WRITE, ""),
        (" due to ", CLOSED_FOR_ABUSE, r"\1"),
        (
            "disabled and",
            r"(?<=disabled) and (?:is )?not accepting (?:messages|mail)\b(?! from)",
            "",
        ),
        # "This temporary address has expired": the address is temporary, not the refusal.
        (
            "temporary",
            r"\btemporary (?=(?:e-?mail )?(?:address|mailbox|alias)"
            r" (?:has|was|is no|no longer|expired))",
            "",
        ),
        ("accept", REFUSED_MESSAGE, ""),
        ("bounced", REFUSED_MESSAGE, ""),
        ("[internal]", r"\[internal\]", ""),  # SparkPost: its own reply
        # A label of the reply, unlike "has hard bounced".
        (
            "hard bounce",
            r"\(hard bounce\)|^hard bounce:",
            "",
        ),
        ("message was", r"message was not accepted -- ", ""),  # Mail.ru: the start of every refusal
        (" due to ", rf"^(?:xaddrx:? )?{LOCKED} {INACTIVITY}", "is disabled due to inactivity"),
        # "User <abuse> unknown": the name of the user is not a word of the reply.
        ("rcpt to", r"\brcpt to ?: ?(?=xaddrx)", ""),  # the command, repeated
        (" <", r"\b(user|account|mailbox|recipient):? <[\w.+-]{1,64}>", r"\1"),
        *(
            (part, CLOSED_ACCOUNT, r"\1\2 is disabled")
            for part in ("lock", "bloqu", "bloccat", "gesperrt")
        ),
    )
)

REPLACEMENTS = MASKS + MISLEADING_CLAUSES
