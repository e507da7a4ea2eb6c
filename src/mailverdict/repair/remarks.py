"""Remarks beside an address that ask for no mail, or say that the address is out of use.

A repair removes the words around an address. These words are a reason not to mail it, or to find
out first.
"""

from __future__ import annotations

import re
from collections import defaultdict

from .words import word_set

# Words that mean it wherever they are.
ANYWHERE = word_set("""
    unsubscribe unsubscribed optout deceased bounced bounces undeliverable complained dnc abgemeldet
    abbestellt ausgetragen gekündigt widersprochen widerspruch werbesperre kontaktsperre mailsperre
    verstorben gestorben ausgeschieden unzustellbar
    désabonné désabonnée desabonne désinscrit désinscrite desinscrit décédé décédée decede fallecido
    fallecida disiscritto disiscritta disdetto deceduto deceduta descadastrado descadastrada
    falecido falecida uitgeschreven afgemeld overleden wypisany wypisana zmarł zmarła nieaktualny
    nieaktualne avregistrerad avanmäld avliden afmeldt afdød avmeldt nekontaktovat neposílat
    odhlášen odhlášena zemřel zemřela aramayın yazmayın отписался отписалась отписан отписана умер
    умерла уволен уволена уволился уволилась недействителен
    """)
# Words that mean it if one of the others is among the next three words.
FOLLOWED = (
    ("not never don't dont",
     "contact mail mails email emails mailing use write send call disturb valid working active "
     "current reachable works"),
    ("no",
     "longer mailing mailings newsletter newsletters marketing advertising mail mails email "
     "emails"),
    ("stop", "mailing mailings emailing contacting sending"),
    ("opt opted", "out"),
    ("passed", "away"),
    ("has", "left"),
    ("left", "company firm organisation organization us"),
    ("remove removed", "me list mailing newsletter"),
    ("please pls to", "remove removed delete deleted"),
    ("zu", "löschen loeschen entfernen streichen"),
    ("wants asked asks wishes", "removed deleted removal deletion unsubscribed"),
    ("bitte", "löschen loeschen entfernen streichen rausnehmen austragen"),
    ("à svp plaît plait merci prière", "supprimer retirer effacer enlever"),
    ("favor", "eliminar borrar quitar remover excluir retirar apagar"),
    ("favore prega", "rimuovere cancellare eliminare togliere"),
    ("graag aub svp", "verwijderen"),
    ("proszę prosze", "usunąć usunac"),
    ("просьба прошу пожалуйста", "удалить удалите исключить"),
    ("out", "use"),
    ("hard soft", "bounce"),
    ("marked", "spam"),
    ("gdpr dsgvo", "delete deletion removal erasure löschen löschung widerspruch"),
    ("nicht",
     "anschreiben kontaktieren anmailen mailen verwenden benutzen nutzen senden schreiben aktuell "
     "gültig gueltig aktiv erreichbar tätig"),
    ("existiert", "nicht"),
    ("kein keine keinen", "mail mails mailing mailings newsletter werbung kontakt kontaktaufnahme"),
    ("ne pas", "contacter écrire ecrire utiliser envoyer solliciter publicité newsletter"),
    ("plus", "valide actif active contacter écrire utiliser"),
    ("quitté", "entreprise l'entreprise société"),
    ("no", "contactar escribir enviar usar llamar molestar vigente mandar trabaja"),
    ("dado dada", "baja"),
    ("non", "contattare scrivere usare inviare utilizzare valido valida attivo attiva lavora"),
    ("não nao", "contatar contactar escrever enviar usar mandar trabalha"),
    ("niet",
     "mailen contacteren benaderen gebruiken aanschrijven schrijven actief geldig werkzaam"),
    ("geen", "mail mailing mailings reclame nieuwsbrief"),
    ("uit", "dienst"),
    ("nie", "kontaktować pisać wysyłać używać mailować"),
    ("kontakta", "inte ej"),
    ("inga", "utskick mejl mail"),
    ("ikke", "kontakt kontaktes"),
    ("kontakt", "ikke"),
    ("vefat", "etti"),
    ("не", "писать отправлять беспокоить контактировать использовать работает действует актуален"),
)  # fmt: skip
# Words that mean it only in brackets or alone: they are also parts of names, as in Old Mill.
ALONE = word_set("""
    old outdated obsolete former formerly left gone dead retired inactive invalid bad wrong bounce
    bouncing blocked
    blacklisted disabled closed defunct rip remove removed delete deleted
    löschen gelöscht loeschen geloescht entfernen entfernt streichen gestrichen supprimer supprimé
    supprimée eliminar eliminado eliminada borrar borrado borrada rimuovere rimosso rimossa
    verwijderen verwijderd usunąć usunięty удалить
    удалён удален
    alt ehemalig ehemals veraltet früher inaktiv ungültig ungueltig falsch gesperrt tot blockiert
    deaktiviert verzogen ancien ancienne invalide inactif obsolète parti partie antiguo inválido
    invalido inactivo vecchio invalida inattivo antigo inativo oud ongeldig inactief stary
    nieaktywny gammal ogiltig gammel ugyldig starý neplatný eski geçersiz
    старый неактивен †
    """)
FILLERS = word_set("e mail mails email address adresse since seit am on in the")
AFTER: dict[str, frozenset[str]] = defaultdict(frozenset)
for _firsts, _others in FOLLOWED:
    for _first in _firsts.split():
        AFTER[_first] |= word_set(_others)
SIGNS_OF_REMARK = ANYWHERE | ALONE | AFTER.keys()
REACH = 3  # words
CLAUSE = re.compile(r"[<>()\[\]{}\"“”;|:\n]|\s[\-–—]\s")
EMPTY_BRACKETS = re.compile(r"<\s*>|\(\s*\)|\[\s*\]|\"\s*\"")
ANY_ADDRESS = re.compile(r"[^\s<>()\[\]:;,]{1,64}@[^\s<>()\[\]:;,]{1,255}")
REMARK_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?|†")
LONGEST = 2_000  # characters of a text that are looked at


def has_remark(around: str) -> bool:
    """Whether the text of a cell without its address is a remark about it.

    It asks for no mail, or says that the address is out of use.

    >>> has_remark("Ada <> - DO NOT CONTACT!"), has_remark("Ada <> (old)")
    (True, True)
    >>> has_remark("Old Mill Hotel <>")
    False
    """
    words = [word.lower() for word in REMARK_WORD.findall(around[:LONGEST].replace("’", "'"))]
    if not words:
        return False
    if SIGNS_OF_REMARK.isdisjoint(words) and "’" not in around:
        return False  # as nearly all
    if not ANYWHERE.isdisjoint(words):
        return True
    for at, word in enumerate(words):
        if word in AFTER and not AFTER[word].isdisjoint(words[at + 1 : at + 1 + REACH]):
            return True
    return any(is_remark_alone(part) for part in CLAUSE.split(around[:LONGEST]))


def is_remark_alone(part: str) -> bool:
    """Whether a text has only words that are a remark if they stand alone; numbers do not count."""
    words = [word.lower() for word in REMARK_WORD.findall(part)]
    others = [word for word in words if not word.isdigit() and word not in FILLERS]
    return bool(others) and ALONE.issuperset(others)


def text_beside(cell: str) -> str:
    """The text of a cell without its address."""
    text = " ".join(EMPTY_BRACKETS.sub(" ", ANY_ADDRESS.sub(" ", cell)).split()).strip(" ,;:.-–—|/")
    return text[1:-1].strip() if text[:1] + text[-1:] in ("()", "[]", "<>", "{}") else text
