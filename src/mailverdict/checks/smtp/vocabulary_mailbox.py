"""Words about the mailbox: a noun that names it, with a predicate that says it is not there, shut or full.

Patterns of the folded and masked text, in the languages whose servers answer in their own.
"""

from __future__ import annotations

from .vocabulary_later import LATER, SERVER_TROUBLE
from .wording import phrases

__all__ = ["ABSENT", "CLOSED", "DOMAIN_TROUBLE", "FULL", "NO_MAILBOX"]

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
