"""The words for an unknown, closed or full mailbox, one row for each language in which mail servers reply.

A word is a regular expression for lower-case text; two or more blanks separate words. Accents may be written, since
`vocabulary` removes them here as it does in replies. Letters that have no accent to remove (``ı ł ø``) need a class,
because servers also write the plain letter. `vocabulary` joins the columns, so that a noun of one language goes with a
predicate of another: many servers mix English with their own language.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LANGUAGES", "ReplyLanguage"]


@dataclass(frozen=True, slots=True)
class ReplyLanguage:
    """The words of one language; the three samples are what servers send, or the standard phrase of the language."""

    name: str
    nouns: str  # a mailbox, its address or its owner
    unknown: str  # said of the noun: it does not exist
    closed: str  # said of the noun: it existed and was closed
    full: str  # said of the noun: it accepts no more
    either: str  # "or", plain words
    samples: tuple[str, str, str]  # unknown, closed, full; each complete
    seen: str  # where such replies were seen
    absent: str = ""  # whole statements that the mailbox does not exist
    none: str = ""  # "there is no", before a noun
    articles: str = ""  # words between that and the noun
    exhausted: str = ""  # whole statements that the mailbox is full
    refused: str = ""  # not permitted: the mailbox may exist
    others: str = ""  # other subjects of an unknown: the sender, a password
    domain: str = ""  # the domain or the server, as another subject
    not_served: str = ""  # the server does not serve the domain
    spaced: bool = True  # words are separated by blanks


# fmt: off
LANGUAGES: tuple[ReplyLanguage, ...] = (
    ReplyLanguage(
        "English",
        nouns=r"""
            users?(?: ?name| ?id)?  usr  rec[iep]{1,4}[ei]nts?  acc?ou?nt?s?  add?res+(?:es|ee)?  mail ?box(?:es)?
            in-?box  mail ?drop  mbox  alias(?:es)?  customer  subscriber  person  local[- ]?part  rcpt
            e-?mail ?(?:id|box|name)  (?:e-?)?mail-?address(?:es)?  employee  student  spectator  xaddrx
        """,
        unknown=r"""
            unk?n?know?n?  unkn?own?  unknonw  uknown  not known  not found  notfound
            (?:could|can) ?n[o']t be (?:found|located)
            (?:is|was|were)n't (?:found|known|valid|recogni[sz]ed|registered)  not? exis?ts?  not existing
            not in use any ?more  not on (?:file|record)
            (?:does|do|did)(?: not?|n't| nt|'nt|nt) (?:currently )?exis?ts?  dosn'?t exist  non-? ?exist(?:ent|ing|ant)?
            no longer (?:exists?|valid|in use|used|with|works?|employed|here|on (?:this|our|the|server))
            not (?:a )?(?:valid|recogni[sz]ed|registered|listed|known|defined|present|a local|local to|here)  not ok
            invalid  undeliverable  unroute?able  illegal  misspelled
            is (?:bad|wrong|incorrect)  unrecogni[sz]ed  has (?:left|moved(?! to another))
            left (?:the|our) (?:company|organi[sz]ation)
            (?<!being )moved(?! to another)  has been replaced by
        """,
        closed=r"""
            inactive  inactivated  disabled  deactivated  suspend(?:ed)?  deleted  removed  closed  cancell?ed
            terminated  expired  discontinued  retired  abandoned  dormant  frozen  archived  not active  not enabled
            not activated  (?<!temporary )(?<!temporarily )locked  now disabled with
            no longer (?:active|available|accepts?|accepting|monitored)
        """,
        full=r"is (?:too )?full",
        either=r"or  and/or",
        samples=("Mailbox not found", "Mailbox disabled", "Mailbox full"),
        seen="all servers; misspelled by bounces in lists of other tools"),
    ReplyLanguage(
        "French",
        nouns=r"""
            utilisateur  destinataires?  adresse(?: e-?mail| mail)?  adressee  compte  abonne
            boite(?: aux? lettres?| mail| de reception)?  bal
        """,
        unknown=r"""
            inconnue?s?  inexistante?s?  introuvables?  n'? ?existe (?:pas|plus)  n'est pas (?:connue?|valide)
            a d[ée]m[ée]nag[ée]  invalides?  non (?:trouvee?|valide)  incorrecte?
        """,
        closed=r"""
            d[ée]sactiv[ée]e?s?  suspendue?s?  ferm[ée]e?s?  expir[ée]e?s?  supprim[ée]e?s?  archiv[ée]e?s?  inactive?
            n'est plus \w+  r[ée]sili[ée]e?
        """,
        full=r"pleine?  satur[ée]e?  d[ée]pass[ée]e?",
        either="ou",
        samples=("Utilisateur inconnu", "Boite aux lettres desactivee", "Boite du destinataire pleine"),
        others=r"adresse de retour  expediteur  emetteur  envoyeur  mot de passe", domain=r"domaine  serveur",
        seen="Orange, Free, La Poste",
        exhausted=r"plus d'espace  espace[^.;]{0,20} (?:insuffisant|[ée]puis[ée])",
        absent=r"\bne (?:fait|travaille) plus (?:partie|chez|dans|pour)", none=r"aucune?  pas d[e']?",
        articles="tel  telle",
        refused=r"""
            non autoris[ée]  pas autoris[ée]  interdit  n'accepte  accepte (?:que|uniquement|seulement)
            qu'en interne  vous a (?:bloqu|refus)[ée]  seuls? les (?:membres|abonn[ée]s)  r[ée]serv[ée]e? aux
        """,
        not_served=r"""
            domaine (?:inconnu|inexistant|non (?:h[ée]berg[ée]|g[ée]r[ée]|local))
            \bn'? ?(?:h[ée]berge|g[èe]re)\w*[^.;]{0,12} (?:ce |le )domaine
        """),
    ReplyLanguage(
        "Spanish",
        nouns=r"""
            usuarios?  destinatari[oa]s?  cuenta(?: de correo)?  direcci[óo]n(?: de correo)?  buz[óo]n(?: de correo)?
            casilla  persona  correo(?: electr[óo]nico)?
        """,
        unknown=r"""
            desconocid[oa]s?  inexistentes?  no (?:se )?existe(?:n|nte)?
            no (?:fue |ha sido )?(?:encontrad|localizad)[oa]  no (?:es )?v[áa]lid[oa]  inv.lid[oa]
            incorrect[oa]  no se encuentra  no se (?:encontr[óo]|reconoce)  no registrad[oa]
            ya no (?:trabaja|labora|forma parte|pertenece)
        """,
        closed=r"""
            desactivad[oa]  deshabilitad[oa]  inhabilitad[oa]  inactiv[oa]  suspendid[oa]  cancelad[oa]  cerrad[oa]
            dad[oa] de baja  (?:ha )?expirad[oa]  caducad[oa]  eliminad[oa]
        """,
        full=r"llen[oa]  excedid[oa]  sin espacio  satura(?:do|da)",
        either="o  u",
        samples=("Usuario desconocido", "Cuenta deshabilitada", "El buzon esta lleno"),
        others=r"direcci[óo]n de retorno  remitente  contrase[ñn]a  clave", domain=r"dominio  servidor  sintaxis",
        seen="servers in Spain and Latin America; lists of other tools",
        absent=r"\bya no hay nadie con est?e (?:e-?mail|correo)",
        none=r"no (?:existe|hay|se encontr[óo]|conocemos a|reconocemos|corresponde a)",
        articles="un  una  el  la  ningún  ninguna  ese  esa  este  esta  dicho  dicha  tal",
        exhausted=r"""
            (?:cuota|espacio)[^.;]{0,20}(?:excedid|superad|agotad|insuficiente)
            (?:excedid|superad|agotad)[oa][^.;]{0,12} (?:cuota|espacio)  (?:sin|no tiene) espacio
        """,
        refused=r"""
            no (?:est[áa] )?(?:autorizad|permitid|habilitad)[oa]
            (?:no|s[óo]lo|[úu]nicamente|solamente) (?:se )?acept\w+
            (?:s[óo]lo|[úu]nicamente|solamente) (?:los )?(?:miembros|suscriptores)
            \b(?:le|te|lo) ha (?:bloquead|rechazad)o
        """,
        not_served=r"""
            dominio[^.;]{0,12} no (?:\w+ )?(?:alojado|existe|v[áa]lido|permitido|local)
            \bno (?:gestiona|aloja|administra|atiende|maneja)\w*[^.;]{0,16} dominio
        """),
    ReplyLanguage(
        "Catalan",
        nouns=r"usuari  destinatari  b[úu]stia(?: de \w+)?  adre[çc]a(?: de correu| electr[òo]nica)?",
        unknown=r"""
            no existeix  desconeg(?:ut|uda)  no (?:s'ha |ha estat )?trobad?[at]?  inexistent  no [ée]s v[àa]lida?
        """,
        closed=r"desactivada?t?  donada?t? de baixa  suspesa?  cancel[·.]?lada?t?",
        full=r"plena?  superat la quota",
        either="o",
        samples=("L'usuari no existeix", "La bustia esta desactivada", "La bustia esta plena"),
        others=r"remitent  contrasenya", domain=r"domini",
        seen="help pages of Catalan providers; standard phrases",
        none=r"no (?:hi ha|existeix)", articles="cap  aquest  aquesta  el  la",
        refused=r"no (?:est[àa] )?(?:autoritza|perm[èe])\w*",
        not_served=r"domini[^.;]{0,12} no (?:\w+ )?(?:allotjat|gestionat|existeix)"),
    ReplyLanguage(
        "Portuguese and Galician",
        nouns=r"""
            enderezo  utilizador  usu[áa]rio  colaborador  funcion[áa]rio
            conta(?: de e-?mail)?  caixa(?: postal| de correio| de entrada)?  endere[çc]o
            destinat[áa]rio
        """,
        unknown=r"""
            desconhecid[oa]s?  n[ãa]o existe(?:nte)?  n[ãa]o (?:foi )?(?:encontrad|localizad|reconhecid)[oa]
            inexistente
            non existe  desco[ñn]ecid[oa]  n[ãa]o [ée]? ?v[áa]lid[oa]  n[ãa]o faz mais parte  n[ãa]o trabalha mais
            n[ãa]o cadastrad[oa]  inv.lid[oa]
        """,
        closed=r"""
            desativad[oa]  desabilitad[oa]  inativ[oa]  suspens[oa]  encerrad[oa]  removid[oa]  cancelad[oa]
            expirou  exclu[íi]d[oa]
        """,
        full=r"chei[oa]  lotad[oa]  excedid[oa]  excedeu",
        either="ou",
        samples=("Usuario inexistente", "Conta desativada", "Caixa postal cheia"),
        others=r"remetente  senha", domain=r"dom[íi]nio  servidor",
        seen="UOL, Terra, Locaweb; bounces in lists of other tools",
        absent=r"\be-?mail inexistente", none=r"nenhuma?  n[ãa]o (?:h[áa]|existe)",
        articles="um  uma  nenhum  nenhuma  esse  essa  este  esta  tal  o  a",
        exhausted=r"""
            \bcota[^.;]{0,20}(?:excedid|atingid|ultrapassad)  espa[çc]o[^.;]{0,20}(?:esgotad|insuficiente)
            sem espa[çc]o  armazenamento[^.;]{0,30} atingid
        """,
        refused=r"""
            n[ãa]o (?:est[áa] )?(?:autorizad|permitid)[oa]  (?:n[ãa]o|s[óo]|somente|apenas) (?:se )?aceit\w+
            (?:s[óo]|somente|apenas) (?:membros|assinantes)
        """,
        not_served=r"dom[íi]nio[^.;]{0,12} n[ãa]o (?:\w+ )?(?:hospedado|existe|atendido|local)"),
    ReplyLanguage(
        "Italian",
        nouns=r"""
            utente  casella(?: di posta| postale| pec| e-?mail)*  indirizzo(?: e-?mail| destinatario)?  destinatario
        """,
        unknown=r"""
            sconosciut[oaie]  inesistent[ei]
            non (?:[èe]'? )?(?:esiste(?:nte)?|trovat[oa]|valid[oa]|corrett[oa]|presente)
            errat[oa]  non [èe]'? stat[oa] trovat[oa]  non risulta (?:registrat|present|esistent)\w*
        """,
        closed=r"""
            disabilitat[oa]  disat+ivat[oa]  inattiv[oa]  sospes[oa]  chius[oa]  scadut[oa]  cessat[oa]  non attiv[oa]
            bloccat[oa] per inutilizzo  eliminat[oa]  cancellat[oa]  rimoss[oa]  dismess[oa]
            non (?:[èe]'? )?piu'? (?:attiv[oa]|in uso|valid[oa]|utilizzat[oa])
        """,
        full=r"pien[oa]  esaurit[oa]",
        either="o  oppure",
        samples=("Utente sconosciuto", "Casella disattivata", "La casella e' piena"),
        others=r"indirizzo di ritorno  mittente  password", domain=r"dominio",
        seen="Aruba, Libero, Tiscali; lists of other tools",
        absent=r"\bdestin\. ?sconosciuto", none=r"nessun[ao]?  non (?:esiste|c'e|corrisponde ad?)'?",
        articles="un  uno  una  il  la  alcun  alcuna  nessun  nessuna  questo  questa  tale  l'",
        exhausted=r"""
            spazio[^.;]{0,20}(?:esaurito|insufficiente)  quota[^.;]{0,20}(?:superata|esaurita)  superato la quota
        """,
        refused=r"""
            non (?:[èe]'? )?(?:autorizzat|abilitat|consentit|ammess)[oaie]  non accett\w+
            accett\w+ (?:sol[oaie]|soltanto|unicamente)  sol[oi] (?:gli |i )?(?:membri|iscritti)
            \b(?:ti|vi|la) ha bloccat[oa]
        """,
        not_served=r"dominio[^.;]{0,12} non (?:\w+'? )?(?:ospitato|gestito|esiste|locale)"),
    ReplyLanguage(
        "German",
        nouns=r"""
            benutzers?(?:name)?  nutzers?  empf(?:ae|ä)ngers?(?:adresse)?  postfach  konto  teilnehmer  kunde  anwender
            adressat  adresse  e-?mail-?adresse  mailadresse  mitarbeiter(?:in)?
        """,
        unknown=r"""
            unbekannt\w*  nicht bekannt  existiert (?:hier )?nicht  nicht gefunden  nicht vorhanden
            ung(?:ue|ü)ltig\w*  unzustellbar  nicht (?:mehr )?(?:g(?:ue|ü)ltig|existent)  gibt es (?:hier )?nicht
            nicht mehr (?:im|bei|besch(?:ae|ä)ftigt|t(?:ae|ä)tig|vorhanden)
        """,
        closed=r"""
            deaktiviert  stillgelegt  inaktiv  gel(?:oe|ö)scht  abgelaufen  nicht (?:mehr )?aktiv  gesperrt
            abgemeldet  gek(?:ue|ü)ndigt  aufgel(?:oe|ö)st
            wird nicht (?:mehr|l(?:ae|ä)nger) (?:verwendet|genutzt|benutzt|gelesen|betreut)
        """,
        full=r"voll  (?:ue|ü)bervoll  (?:ue|ü)berf(?:ue|ü)llt  ersch(?:oe|ö)pft",
        either="oder",
        samples=("Benutzer unbekannt", "Postfach deaktiviert", "Postfach voll"),
        others=r"r(?:ue|ü)ck\w*adresse  absender\w*  passwort  kennwort", domain=r"domain  dom(?:ae|ä)ne  rechner",
        seen="GMX, WEB.DE, T-Online, local rules; lists of other tools",
        absent=r"""
            \bkein\w* (?:\w+ )?(?:benutzer|nutzer|empf(?:ae|ä)nger|postfach|konto|teilnehmer|mailbox)
            \bunbekannte\w* (?:benutzer|nutzer|empf(?:ae|ä)nger|adresse|konto)
            \bniemand unter dieser \S*adresse bekannt
            \bung(?:ue|ü)ltige\w* (?:benutzer|empf(?:ae|ä)nger\w*|\S*adresse)
        """,
        exhausted=r"""
            speicher\w*[^.;]{0,40}\b(?:voll|(?:ue|ü)berschritten|ersch(?:oe|ö)pft)  (?:ue|ü)berschritten
            zu ?viele (?:e-?)?mails auf  kein (?:freier )?(?:speicher\w*|platz)
        """,
        refused=r"""
            nicht (?:berechtigt|erlaubt|zugelassen|autorisiert)  nur per de-mail  darf \w*\s?keine?n?
            (?:akzeptiert|nimmt) (?:keine|nur)  nicht akzeptiert  nur intern\w*  hat sie
            nur (?:f(?:ue|ü)r )?(?:mitglieder|abonnenten)
        """,
        not_served=r"""
            (?:domain|dom(?:ae|ä)ne)[^.;]{0,12} nicht (?:\w+ ){0,2}(?:gehostet|bekannt|zust(?:ae|ä)ndig|lokal)
            (?:domain|dom(?:ae|ä)ne)[^.;]{0,12} nicht (?:\w+ ){0,2}(?:verwaltet|betreut)
        """),
    ReplyLanguage(
        "Dutch",
        nouns=r"gebruiker  ontvanger  (?:e-?mail)?adres  e-?mail-?adres  postvak  geadresseerde",
        unknown=r"onbekende?  bestaat (?:hier )?niet  niet (?:gevonden|bekend|geldig)  ongeldig",
        closed=r"uitgeschakeld  opgeheven  geblokkeerd  niet (?:meer )?actief  verwijderd",
        full=r"vol",
        either="of",
        samples=("Gebruiker onbekend", "Postvak uitgeschakeld", "Postvak is vol"),
        others=r"afzender\w*  verzender  wachtwoord", domain=r"domein\w*",
        seen="KPN, Ziggo, Telenet, XS4ALL; standard phrases",
        absent=r"\bonbekende (?:gebruiker|ontvanger)  \bgeen (?:\w+ )?(?:gebruiker|ontvanger|mailbox|postvak)",
        refused=r"niet toegestaan  geen toestemming", not_served=r"domein[^.;]{0,12} niet (?:\w+ )?(?:gehost|bekend)"),
    ReplyLanguage(
        "Swedish, Danish and Norwegian",
        nouns=r"""
            anv[äa]ndare\w*  mottagare\w*  adress\w*  brevl[åa]da\w*  konto\w*  bruger\w*  modtager\w*  postkasse\w*
            bruker\w*  mottaker\w*  postboks\w*  e-?post\w*
        """,
        unknown=r"""
            ok[äa]nd  finns (?:inte|ej)  hittades inte  existerar (?:inte|ej)  ogiltig  ukendt  findes ikke
            eksisterer ikke  ugyldig  ukjent  finnes ikke  ikke funnet
        """,
        closed=r"inaktiverad  avst[äa]ngd  sp[äa]rrad  lukket  deaktiveret  sp[æa]rret  deaktivert  stengt  sperret",
        full=r"[äa]r full[at]?  er (?:full|fuld)t?",
        either="eller",
        samples=("Mottagaren finns inte", "Kontot inaktiverad", "Brevladan ar full"),
        others=r"avs[äa]ndare\w*  afsender\w*  avsender\w*  l[öo]senord",
        domain=r"dom[äa]n\w*  dom[æa]ne\w*  domene\w*",
        seen="Telia, Telenor, TDC; standard phrases",
        absent=r"""
            \bok[äa]nd (?:anv[äa]ndare|mottagare|adress)  \bukendt (?:bruger|modtager|adresse)
            \bukjent (?:bruker|mottaker|adresse)  \bingen (?:s[åa]dan )?(?:anv[äa]ndare|bruger|bruker|mottagare)
            \bning[u]n usuario
        """,
        refused=r"inte till[åa]ten  ikke tilladt  ikke tillatt"),
    ReplyLanguage(
        "Finnish",
        nouns=r"k[äa]ytt[äa]j[äa]\w*  vastaanottaja\w*  osoite\w*  osoitetta  postilaatikko\w*  tili[äa]?",
        unknown=r"tuntematon  ei l[öo]y(?:dy|tynyt)  ei ole(?: olemassa|$)  virheellinen",
        closed=r"suljettu  poistettu  ei k[äa]yt[öo]ss[äa]  lukittu",
        full=r"t[äa]ynn[äa]",
        either="tai",
        samples=("Vastaanottajaa ei loydy", "Postilaatikko suljettu", "Postilaatikko on taynna"),
        others=r"l[äa]hett[äa]j[äa]\w*  salasana", domain=r"verkkotunnus\w*  toimialue\w*  palvelin\w*",
        seen="standard phrases", absent=r"\btuntematon (?:k[äa]ytt[äa]j[äa]|vastaanottaja|osoite)",
        refused=r"ei sallittu"),
    ReplyLanguage(
        "Polish",
        nouns=r"u[żz]ytkownik\w*  odbiorca  odbiorcy  skrzynk[aię]  konto  adres(?:at)?",
        unknown=r"""
            nie istnieje  nieznan[ya]  nie (?:zosta[lł]\w? )?znalezion[oya]  nieprawid[lł]ow[ya]  nie odnaleziono
        """,
        closed=r"nieaktywn[aey]  zablokowan[aey]  zawieszon[aey]  wy[lł][aą]czon[aey]  usuni[eę]t[aey]",
        full=r"pe[lł]n[ay]  przepe[lł]nion[ay]  zape[lł]nion[ay]",
        either="lub  albo",
        samples=("Uzytkownik nie istnieje", "Konto zablokowane", "Skrzynka jest pelna"),
        others=r"nadawc[aoy]\w*  has[lł]o", domain=r"domen[ay]  serwer",
        seen="WP, Onet, o2, Interia; lists of other tools",
        absent=r"""
            \b(?:nie ma|brak) takiego (?:u[żz]ytkownika|konta|adresu|odbiorcy)
            \bnieznany (?:u[żz]ytkownik|adresat|odbiorca)
        """,
        exhausted=r"przekroczon[oya][^.;]{0,30}(?:limit|pojemno[śs]|quot|skrzynk)",
        refused=r"brak uprawnie[ńn]  nie zezwala  antyspam\w*"),
    ReplyLanguage(
        "Czech and Slovak",
        nouns=r"(?:po)?u[žz][ií]vatel\w*  schr[áa]nka  p[řr][ií]jemce  adres[áa]t?  [úu][čc]et",
        unknown=r"neexistuje  nezn[áa]m[ýáy]  nenalezena?  neplatn[áýa]",
        closed=r"zru[šs]ena?  zablokov[áa]n[ao]?  deaktivov[áa]n[ao]?",
        full=r"pln[áa]  p[řr]epln[ěe]na",
        either="nebo  alebo  či",
        samples=("Uzivatel neexistuje", "Schranka zrusena", "Schranka je plna"),
        others=r"odes[íi]latel\w*  odosielate[ľl]\w*  heslo", domain=r"dom[ée]n[ay]",
        seen="Seznam, C4; standard phrases", absent=r"\bnezn[áa]m[ýy] (?:u[žz]ivatel|p[řr][ií]jemce|adres[áa]t)",
        refused=r"nen[ií] povolen[oa]?"),
    ReplyLanguage(
        "Hungarian",
        nouns=r"felhaszn[áa]l[óo]\w*  c[íi]mzett\w*  postafi[óo]k\w*  e-?mail c[íi]m",
        unknown=r"nem l[ée]tezik  ismeretlen  nem tal[áa]lhat[óo]",
        closed=r"letiltv?a?  megsz[űu]nt  inakt[íi]v  felf[üu]ggesztv?e?",
        full=r"megtelt  tele van",
        either="vagy",
        samples=("A felhasznalo nem letezik", "A postafiok megszunt", "A postafiok megtelt"),
        others=r"felad[óo]\w*  k[üu]ld[őo]\w*  jelsz[óo]", domain=r"tartom[áa]ny\w*  szerver",
        seen="Freemail, Citromail; standard phrases", absent=r"\bismeretlen (?:felhaszn[áa]l[óo]|c[íi]mzett)",
        refused=r"nem enged[ée]lyezett"),
    ReplyLanguage(
        "Romanian",
        nouns=r"utilizator(?:ul)?  destinatar(?:ul)?  adresa  cont(?:ul)?  c[ăa]su[țt][ăa](?: po[șs]tal[ăa])?",
        unknown=r"necunoscut[ăa]?  nu exist[ăa]  inexistent[ăa]?  nu a fost g[ăa]sit[ăa]?",
        closed=r"dezactivat[ăa]?  suspendat[ăa]?  blocat[ăa]?  [șs]ters[ăa]?  [îi]nchis[ăa]?",
        full=r"plin[ăa]?",
        either="sau",
        samples=("Utilizator necunoscut", "Contul dezactivat", "Casuta este plina"),
        others=r"expeditor\w*  parola", domain=r"domeniu\w*",
        seen="standard phrases",
        none=r"nu exist[ăa]", articles="nici un  nici o  niciun  nicio  nici  un  o  acest  această",
        refused=r"nu este permis  nu accept[ăa]", exhausted=r"spa[țt]iu\w*[^.;]{0,12} insuficient",
        not_served=r"domeniu\w*[^.;]{0,12} nu (?:\w+ )?(?:g[ăa]zduit|exist[ăa]|local)"),
    ReplyLanguage(
        "Croatian, Serbian and Slovene",
        nouns=r"korisnik  primatelj  primalac  uporabnik  prejemnik  sandu[čc]i[ćc]  naslov",
        unknown=r"ne postoji  nepoznat  ne obstaja  neznan  nije prona[đd]en",
        closed=r"onemogu[ćc]en  isklju[čc]en  zaklju[čc]an",
        full=r"pun  prepun",
        either="ili  ali",
        samples=("Korisnik ne postoji", "Korisnik onemogucen", "Sanducic je pun"),
        others=r"po[šs]iljatelj\w*  po[šs]iljalac  lozinka", domain=r"domena",
        seen="standard phrases", absent=r"\bnepoznat (?:korisnik|primatelj)", refused=r"nije dopu[šs]ten[oa]?"),
    ReplyLanguage(
        "Russian, Ukrainian and Bulgarian",
        nouns=r"""
            пользовател[ьяею]м?  получател[ьяею]  (?:почтовы[йе] )?ящик[аи]?  адрес(?:ат)?[аи]?  учетная запись  аккаунт
            користувач[аіу]?  одержувач[аіу]?  скриньк[аи]  потребител[ят]?[тя]?  корисник
        """,
        unknown=r"""
            не (?:был )?найден\w*  не существует  неизвестен  неизвестный  неверный  отсутствует  не зарегистрирован\w*
            не знайдено  не існує  невідомий  не съществува  не постои  не постоји  непознат
        """,
        closed=r"""
            заблокирован[ао]?  отключен[ао]?  удален[ао]?  закрыт[ао]?  неактив[её]?н[ао]?  приостановлен[ао]?
            заблоковано  вимкнено
        """,
        full=r"переполнен[ао]?  заполнен[ао]?  переповнен[ао]",
        either="или  либо  або  чи",
        samples=("Пользователь не найден", "Ящик заблокирован", "Почтовый ящик переполнен"),
        others=r"отправител\w+  відправник\w*  парол\w+", domain=r"домен\w*  сервер\w*",
        seen="Mail.ru, Rambler, i.ua; standard phrases",
        absent=r"""
            \bнет таког?о? (?:почтового )?(?:пользователя|получателя|адреса|ящика)
            \bнеизвестный (?:пользователь|получатель|адрес)
            \bтак(?:ого|ой) (?:пользователя|користувача|адреса|адрес) (?:нет|не)  \bкористувача не знайдено
            \bняма такъв (?:потребител|получател|адрес)  \bнепознат (?:корисник|прималац)
        """,
        exhausted=r"(?:превышен\w*|перевищено) (?:\w+ )?квот[аыу]",
        refused=r"доступ запрещ[её]н  не разрешен[оа]?  запрещено"),
    ReplyLanguage(
        "Turkish",
        nouns=r"kullan[iı]c[iı]\w*  al[iı]c[iı]\w*  posta kutusu  hesap  hesab[iı]  adres\w*",
        unknown=r"bulunamad[iı]  mevcut de[ğg]il  ge[çc]ersiz  bilinmiyor  tan[iı]ml[iı] de[ğg]il",
        closed=r"kapat[iı]ld[iı]  kapal[iı]  devre d[iı][şs][iı]  ask[iı]ya al[iı]nd[iı]",
        full=r"dolu",
        either="veya  ya da",
        samples=("Kullanici bulunamadi", "Hesap devre disi", "Posta kutusu dolu"),
        others=r"g[öo]nderen\w*  g[öo]nderici\w*  [şs]ifre  parola", domain=r"alan ad[iı]\w*  etki alan[iı]  sunucu\w*",
        seen="translations on backlink.name; standard phrases",
        absent=r"""
            \b(?:bilinmeyen|ge[çc]ersiz) (?:kullan[iı]c[iı]|al[iı]c[iı]|adres)  \bb[öo]yle bir kullan[iı]c[iı] yok
        """,
        exhausted=r"kota\w* (?:a[şs][iı]ld[iı]|doldu)", refused=r"izin verilm\w+"),
    ReplyLanguage(
        "Greek",
        nouns=r"χρήστης  παραλήπτης  διεύθυνση  γραμματοκιβώτιο  λογαριασμός",
        unknown=r"δεν υπάρχει  δεν βρέθηκε  άγνωστ[οη]ς?  άκυρ[οη]ς?",
        closed=r"απενεργοποιημέν[οη]ς?  ανενεργ[όή]ς?",
        full=r"πλήρες  γεμάτο",
        either="ή",
        samples=("Ο χρήστης δεν υπάρχει", "Ο λογαριασμός απενεργοποιημένος", "Το γραμματοκιβώτιο είναι πλήρες"),
        others=r"αποστολέ\w+  κωδικός", domain=r"τομέας  διακομιστής",
        seen="standard phrases", absent=r"\bάγνωστος (?:χρήστης|παραλήπτης)", refused=r"δεν επιτρέπεται"),
    ReplyLanguage(
        "Arabic",
        nouns=r"(?:ال)?مستخدم  (?:ال)?مستلم  (?:ال)?عنوان  صندوق البريد  (?:ال)?حساب",
        unknown=r"غير موجود  غير معروف  غير صالح",
        closed=r"معطل  مغلق  موقوف",
        full=r"ممتلئ",
        either="أو",
        samples=("المستخدم غير موجود", "الحساب معطل", "صندوق البريد ممتلئ"),
        others=r"(?:ال)?مرسل  كلمة", domain=r"(?:ال)?نطاق  (?:ال)?خادم",
        seen="standard phrases", absent=r"\bلا يوجد (?:مستخدم|حساب|مستلم)", refused=r"غير مسموح"),
    ReplyLanguage(
        "Hebrew",
        nouns=r"ה?משתמש  ה?נמען  ה?כתובת  תיבת (?:ה?דואר|ה?מייל)  ה?חשבון",
        unknown=r"(?:לא|אינו|אינה|איננו) (?:קיים|קיימת|נמצא|נמצאה|מוכר|ידוע)",
        closed=r"מושבת  חסום  סגור",
        full=r"מלאה",
        either="או",
        samples=("המשתמש לא קיים", "החשבון מושבת", "תיבת הדואר מלאה"),
        others=r"ה?שולח  סיסמה", domain=r"ה?דומיין  ה?שרת",
        seen="standard phrases", refused=r"אינו מורשה"),
    ReplyLanguage(
        "Chinese",
        nouns=r"用户  用戶  收件人  收件者  邮箱  郵箱  信箱  帐号  账号  帳號  账户  (?<!ip)地址",
        unknown=r"不存在  未找到  找不到",
        closed=r"禁用  停用  冻结  凍結  锁定  鎖定  过期  過期",
        full=r"已满  已滿  满了  空间不足  空間不足  超额  容量满",
        either="或者  或",
        samples=("用户不存在", "帐号已被禁用", "邮箱已满"),
        others=r"发件人  寄件人  寄件者  发信人  發件人  密码", domain=r"域名  域  服务器  主机",
        seen="Coremail, QQ, NetEase, in help pages about bounces",
        absent=r"(?:没有|沒有|查?无|查?無)(?:此|该|這個|这个)(?:用户|用戶|使用者|人|收件人|帐号|账号|帳號|邮箱|郵箱|信箱)",
        refused=r"拒绝  拒收  拒絕", spaced=False),
    ReplyLanguage(
        "Japanese",
        nouns=r"ユーザー?  受信者  宛先  (?:メール)?アドレス  メールボックス  アカウント",
        unknown=r"存在しま?せん?  存在しない  見つかりません  登録されていません  不明",
        closed=r"停止  無効  解約",
        full=r"いっぱい  一杯  容量を?超え  容量超過  満杯",
        either="または  もしくは",
        samples=("ユーザーが存在しません", "アカウントは停止されています", "メールボックスがいっぱいです"),
        others=r"送信者  送信元  差出人  パスワード", domain=r"ドメイン  サーバー?  ホスト",
        seen="dream.jp help pages; standard phrases", refused=r"拒否", spaced=False),
    ReplyLanguage(
        "Korean",
        nouns=r"사용자  수신자  메일함  편지함  사서함  계정  주소",
        unknown=r"존재하지 ?않  찾을 수 없  알 수 없",
        closed=r"정지  비활성  휴면  해지",
        full=r"가득  용량 ?초과  용량이 초과",
        either="또는  혹은",
        samples=("사용자가 존재하지 않습니다", "휴면 계정입니다", "메일함이 가득 찼습니다"),
        others=r"발신자  송신자  보낸 ?사람  비밀번호", domain=r"도메인  서버",
        seen="Naver, Daum, in help pages about bounces",
        absent=r"""
            (?:존재하지 ?않는|없는|알 수 없는) ?(?:사용자|수신자|계정|주소)
            (?:사용자|수신자|계정|주소)(?:가|이) 없습니다
        """,
        refused=r"차단  거부", spaced=False),
    ReplyLanguage(
        "Indonesian and Malay",
        nouns=r"pengguna  penerima  akun  akaun  alamat(?: e-?mail)?  kotak (?:surat|masuk)  peti mel",
        unknown=r"tidak (?:ditemukan|dikenal|terdaftar|ada|valid|dijumpai|wujud)",
        closed=r"dinonaktifkan  ditutup  diblokir  tidak aktif  digantung",
        full=r"penuh",
        either="atau",
        samples=("Pengguna tidak ditemukan", "Akun dinonaktifkan", "Kotak surat penuh"),
        others=r"pengirim  kata sandi", domain=r"domain  server",
        seen="standard phrases", refused=r"tidak diizinkan  tidak dibenarkan"),
    ReplyLanguage(
        "Vietnamese",
        nouns=r"ng[uư][oờ]i (?:d[uù]ng|nh[aậ]n)  [dđ][iị]a ch[iỉ]  h[oộ]p th[uư]  t[aà]i kho[aả]n",
        unknown=r"kh[oô]ng (?:t[oồ]n t[aạ]i|t[iì]m th[aấ]y|h[oợ]p l[eệ])",
        closed=r"b[iị] (?:kh[oó]a|v[oô] hi[eệ]u h[oó]a)  [dđ][aã] (?:[dđ][oó]ng|x[oó]a)",
        full=r"[dđ][aầ]y",
        either="hoac  hoặc",
        samples=("Nguoi dung khong ton tai", "Tai khoan bi khoa", "Hop thu day"),
        others=r"ng[uư][oờ]i g[uử]i  m[aậ]t kh[aẩ]u", domain=r"t[eê]n mi[eề]n  m[aá]y ch[uủ]",
        seen="standard phrases", refused=r"kh[oô]ng [dđ][uư][oợ]c ph[eé]p"),
    ReplyLanguage(
        "Persian",
        nouns=r"کاربر  گیرنده  نشانی  آدرس  صندوق(?: پستی)?  حساب",
        unknown=r"یافت نشد  وجود ندارد  ناشناخته  نامعتبر",
        closed=r"غیرفعال  مسدود  بسته",
        full=r"پر (?:است|شده)",
        either="یا",
        samples=("کاربر یافت نشد", "حساب غیرفعال", "صندوق پر است"),
        others=r"فرستنده  رمز", domain=r"دامنه  سرور",
        seen="standard phrases", refused=r"مجاز نیست"),
)
# fmt: on
