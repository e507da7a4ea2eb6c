"""Words around an address, or in place of a sign in it; and words that stand for no address."""

from __future__ import annotations

import re
from functools import cache

from ..checks.lists.files import find_lists, read_entries
from ..checks.lists.flags import WHOLE


def word_set(text: str) -> frozenset[str]:
    """The words of a text that are separated by blanks."""
    return frozenset(text.split())


def phrase_set(text: str) -> frozenset[str]:
    """The phrases of a text that are separated by commas."""
    return frozenset(phrase.strip() for phrase in text.split(",") if phrase.strip())


LABELS = word_set("""
    e-mail email mail mails e-mails emails e-post epost e-posta eposta e-mailadres e-mailadresse
    e-mail-adresse adres mailadresse mail-adresse emailadresse emailadres emailaddress kontaktmail
    correo courriel mél mel posta pec sähköposti sposti mejl netfang surel ebost e-pasts e-pošta
    pošta poczta почта пошта поща мыло
    имейл імейл емейл мейл メール メールアドレス eメール 이메일 메일
    邮箱 邮件 电子邮件 電子郵件 信箱 البريد el posti почтовый эл work home private office
    business personal privat geschäftlich geschaeftlich dienstlich arbeit beruflich trabajo casa
    travail bureau perso lavoro ufficio trabalho werk privé praca dom рабочий личный домашний
    contact kontakt contacto contatto to from cc bcc an von reply-to replyto smtp rfc822 acct sip
    internet skype mailto adresse address indirizzo dirección
    endereço e-mailová user username login userprincipalname upn
    adresa primary secondary other main old new alt neu alternative type pref
""")
# Whole cells that stand for a missing value, in lower case and of at most 16 octets: those that
# pandas.read_csv reads as one by default (`na_values`; pandas 3.1, 2026-11), so that a file gives
# the same statuses whether pandas or the command line reads it; and what people write where they
# have no address, as seen in public lists and forms.
NO_VALUES = phrase_set("""
    #n/a, #n/a n/a, #na, <na>, n/a, na, null, none, nan, -nan, 1.#ind, -1.#ind, 1.#qnan, -1.#qnan,
    n.a., n.a, n/d, n.d., nil, nill, -, --, ---, ----, –, —, ., .., ..., …, ?, ??, ???, *, **, ***,
    /, //, _, __, #, xx, xxx, xxxx, xxxxx, xxxxxx, not available, not applicable, not known,
    not provided, not given, no email, no e-mail, no mail, no address, on leave, vacant, unknown,
    nothing, empty, blank, tba, tbc, tbd, kein, keine, keine angabe, keine angaben, k.a., k. a.,
    k.a, keine email, keine e-mail, keine mail, nicht vorhanden, nicht bekannt, unbekannt, leer,
    vakant, n.v., néant, neant, aucun, aucune, inconnu, inconnue, non renseigné, non renseigne,
    pas de mail, pas d'email, sans email, vide, ninguno, ninguna, no tiene, sin correo, sin email,
    desconocido, s/d, no disponible, no aplica, nenhum, nenhuma, não tem, nao tem, sem email,
    sem e-mail, desconhecido, não possui, nao possui, nessuno, nessuna, non disponibile,
    non presente, sconosciuto, assente, senza email, n.p., geen, onbekend, niet bekend, geen email,
    geen e-mail, n.v.t., nvt, brak, brak danych, nie ma, nie posiada, nie dotyczy, nieznany, není,
    žádný, nemá, nema, neuvedeno, nie je, žiadny, neuvedené, nincs, nincs adat, ismeretlen, saknas,
    ingen, okänd, ukendt, ukjent, mangler, ei ole, puuttuu, nu are, lipsa, lipsă, necunoscut,
    nepoznato, yok, bilinmiyor, нет, немає, відсутня, няма, 无, 無, なし, 不明, 暂无, 없음, ka, nd,
    nc, n/c, s/n, non ha, sin datos, aucun mail, aucun email,
    ingen e-post, ingen epost, ingen email, nessuna mail, nessuna email,
    noemail, no-email, no_email, no.email, nomail, no-mail, no_mail, no.mail, noemailaddress,
    no email address, noaddress, without email, w/o email, has no email, keinemail, kein-email,
    kein.email, keine-email, kein email, kein mail, keine vorhanden, sansemail, sansmail, sans mail,
    pas d'e-mail, pas de courriel, aucun courriel, aucun e-mail, sinemail, sin-email, sin.email,
    sincorreo, sin.correo, no tiene email, no tiene correo, sememail, semmail, sem mail, senzaemail,
    senzamail, senza mail, senza e-mail, geenemail, geen-email, geenmail, geen mail, brakmaila,
    brak maila, brak email, brak e-mail, nemamail, nema mail, nema email, nincs email, ingenepost,
    ingen mail, ei sähköpostia, e-posta yok, email yok, нет email, нет e-mail,
    n/a@n/a, na@na, none@none, no@no, null@null, nil@nil, x@x, xx@xx, xxx@xxx, no@email, no@mail,
    none@email,
    none@mail, noemail@noemail, nomail@nomail, no@noemail, noemail@none,
""")
SIGNS_AROUND = ".()<>[]"  # that do not count around such a cell
MISSING = frozenset(phrase.strip(SIGNS_AROUND) for phrase in NO_VALUES)  # an empty one, too
# Words beside an address that stand for no value.
PLACEHOLDERS = word_set("nope no void nada x отсутствует") | {
    phrase for phrase in NO_VALUES if " " not in phrase
}
# Local parts that people write where a form asks for an address and there is none.
NO_NAMES = word_set("""
    none noemail no-email no_email no.email nomail no-mail noemailaddress noaddress notavailable
    notprovided notgiven na n-a null nil nan unknown xxx xxxx xxxxx keine keinemail keineemail
    kein-email keine-email unbekannt aucun sansemail sansmail sinemail sincorreo notiene
    notienecorreo sememail naotem nessuna nessuno senzaemail senzamail nonha geen geenemail geenmail
    brak brakmaila nincs nema nemamail ingen ingenepost yok
""")
# Both sides of an address in which these stand say that there is none: noemail@noemail.com. One
# side is not enough: none@gmail.com may be a person, and ada@none.com a customer. No word is here
# that is also a name (brak, nil, nan).
SAYS_NONE = word_set("""
    none noemail no-email no_email no.email nomail no-mail no_mail noemailaddress no-email-address
    noaddress no-address notavailable not-available notprovided not-provided notgiven unknown
    keinemail keineemail kein-email keine-email sansemail sansmail sans-mail sinemail sin-email
    sincorreo sin-correo sememail semmail sem-email senzaemail senzamail geenemail geenmail
    geen-email brakmaila brak-maila nemamail nema-mail ingenepost ingen-epost
""")
NONE_LOCALS = SAYS_NONE | word_set("na n-a n/a no null nil xxx xxxx")
NONE_WORDS = "|".join(map(re.escape, sorted(SAYS_NONE)))
NONE_DOMAIN = rf"^(?:{NONE_WORDS})(?:\.[a-z]{{2,3}})?\.[a-z]{{2,6}}$"
CONJUNCTIONS = word_set(
    "and or und oder u bzw sowie et ou y o e i en of och eller og tai ja и или oraz lub ve veya"
)
SENTENCE = word_set("""
    to at an is my me please write bitte auf per via über by the your our for für le la il el der
    die das use with mit
    bei de du à sur vers a ist est es contact new send ask try only
""")
# Single words before an address that say something else than whose it is.
NOT_A_NAME = SENTENCE | word_set("""
    not no non never nicht kein keine nie ne nem não nao ikke inte ej niet geen instead statt use
    old alt ex former
    ehemals früher previously was war
""")
KNOWN = LABELS | PLACEHOLDERS | CONJUNCTIONS
# Short known words that are certainly a label, and long ones with which names of mailboxes begin.
SHORT_MAIL_WORDS = word_set("mail mejl pec acct smtp")
BEGINNINGS = word_set("""
    business contact contacto contatto kontakt internet office other personal primary privat private
    skype
""")
# Words for the sign @: "at" and names of the sign that are hardly ever words of a name.
AT_WORDS = word_set("""
    at ät æt arroba arobase arobas chiocciola snabel-a snabela apenstaartje klammeraffe malpa małpa
    zavinac zavináč
    kukac miukumauku собака
""")
DOT_WORDS = word_set(
    "dot punkt point punto ponto punt kropka точка крапка nokta tečka tecka bodka pont piste"
)
WORD = re.compile(r"[^\W_][\w'’.\-]*")
PARTS_OF_LABEL = re.compile(r"[\d_]+")


def says_no_value(cell: str) -> bool:
    """Whether a cell is empty or stands for a missing value.

    >>> says_no_value("(None)"), says_no_value("k.A."), says_no_value("nobody")
    (True, True, False)
    """
    return cell.strip().lower().strip(SIGNS_AROUND) in MISSING


def names_nobody(address: str) -> bool:
    """Whether both sides of an address say that there is none.

    >>> names_nobody("noemail@noemail.com")
    True
    >>> names_nobody("noemail@gmail.com"), names_nobody("ada@noemail.com")
    (False, False)
    """
    local, _, domain = address.lower().rpartition("@")
    if local.rstrip("0123456789") not in NONE_LOCALS:
        return False
    return re.match(NONE_DOMAIN, domain) is not None


def is_label(word: str) -> bool:
    """Whether a word is the name of a field; it may have several parts or a number.

    >>> is_label("E-Mail"), is_label("email_address"), is_label("Mail2"), is_label("ada")
    (True, True, True, False)
    """
    word = word.lower()
    if word in LABELS:
        return True
    parts = [part for part in PARTS_OF_LABEL.split(word) if part]
    return bool(parts) and LABELS.issuperset(parts)


def is_role_word(word: str) -> bool:
    """Whether a word names a function, as the local part of a shared mailbox does."""
    return word.lower() in role_words()


@cache
def role_words() -> frozenset[str]:
    """The packaged roles, but for those that are names of people, too."""
    lists = find_lists(("role_core", "role_languages")).values()
    return frozenset(
        role for listing in lists for role in read_entries(listing) if not role.startswith(WHOLE)
    )
