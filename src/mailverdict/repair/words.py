"""Words that people write around an address, or in place of a sign in it."""

from __future__ import annotations

import re
from functools import cache

from ..checks.lists.files import find_lists, read_entries
from ..checks.lists.flags import WHOLE
from .remarks import word_set

LABELS = word_set("""
    e-mail email mail mails e-mails emails e-post epost e-posta eposta e-mailadres e-mailadresse e-mail-adresse adres
    mailadresse mail-adresse emailadresse emailadres emailaddress kontaktmail correo courriel mél mel posta pec
    sähköposti sposti mejl netfang surel ebost e-pasts e-pošta pošta poczta почта пошта поща мыло
    имейл імейл емейл мейл メール メールアドレス eメール 이메일 메일 邮箱 邮件 电子邮件 電子郵件 信箱 البريد
    el posti почтовый эл work home private office
    business personal privat geschäftlich geschaeftlich dienstlich arbeit beruflich trabajo casa travail bureau
    perso lavoro ufficio trabalho werk privé praca dom рабочий личный домашний contact kontakt contacto contatto to from
    cc bcc an von reply-to replyto smtp rfc822 acct sip internet skype mailto adresse address indirizzo dirección
    endereço e-mailová user username login userprincipalname upn
    adresa primary secondary other main old new alt neu alternative type pref
""")
# Words that stand for no value, and words between two values.
PLACEHOLDERS = word_set("""
    none null nil na n/a nan keine kein nope no unknown unbekannt leer empty void nada ninguno aucun nessuno tbd tba x
    geen ingen brak yok нет немає отсутствует 无 なし 없음
""")
CONJUNCTIONS = word_set("and or und oder u bzw sowie et ou y o e i en of och eller og tai ja и или oraz lub ve veya")
SENTENCE = word_set("""
    to at an is my me please write bitte auf per via über by the your our for für le la il el der die das use with mit
    bei de du à sur vers a ist est es contact new send ask try only
""")
# Single words before an address that say something else than whose it is.
NOT_A_NAME = SENTENCE | word_set("""
    not no non never nicht kein keine nie ne nem não nao ikke inte ej niet geen instead statt use old alt ex former
    ehemals früher previously was war
""")
KNOWN = LABELS | PLACEHOLDERS | CONJUNCTIONS
# Words for the sign @: "at" and names of the sign that are hardly ever words of a name.
AT_WORDS = word_set("""
    at ät æt arroba arobase arobas chiocciola snabel-a snabela apenstaartje klammeraffe malpa małpa zavinac zavináč
    kukac miukumauku собака
""")
DOT_WORDS = word_set("dot punkt point punto ponto punt kropka точка крапка nokta tečka tecka bodka pont piste")
PARTS_OF_LABEL = re.compile(r"[\d_]+")


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
    return frozenset(role for listing in lists for role in read_entries(listing) if not role.startswith(WHOLE))
