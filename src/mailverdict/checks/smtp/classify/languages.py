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
    seen: str = "standard phrases"  # where such replies were seen
    absent: str = ""  # whole statements that the mailbox does not exist
    none: str = ""  # "there is no", before a noun
    articles: str = ""  # words between that and the noun
    before: str = ""  # said directly before the noun: no such, unknown
    exhausted: str = ""  # whole statements that the mailbox is full
    refused: str = ""  # not permitted: the mailbox may exist
    unable: str = ""  # cannot receive mail: closed, or only now
    others: str = ""  # other subjects of an unknown: the sender, a password, authentication
    domain: str = ""  # the domain or the server, as another subject
    not_served: str = ""  # the server does not serve the domain
    error: str = ""  # what "unknown" or "wrong" is said of instead: an error, a reason, a format
    message: str = ""  # the message: it is what was blocked, not the mailbox
    listed: str = ""  # a black list
    too_many: str = ""  # a count: too many unknown recipients
    reverse_dns: str = ""  # reverse DNS
    spaced: bool = True  # words are separated by blanks


# fmt: off
LANGUAGES: tuple[ReplyLanguage, ...] = (
    ReplyLanguage(
        "English",
        nouns=r"""
            users?(?: ?name| ?id)?  usr  rec[iep]{1,4}[ei]nts?  acc?ou?nt?s?  add?res+(?:es|ee)?  mail ?box(?:es)?
            in-?box  mail ?drop  mbox  alias(?:es)?  customer  subscriber  person  local[- ]?part  rcpt
            e-?mail ?(?:box|name)  rcptto  (?:e-?)?mail ?id  (?:e-?)?mail[- ]?add?res+(?:es)?  employee  student
            spectator  login name  xaddrx  receivers?
        """,
        unknown=r"""
            unk?n?know?n?  unkn?own?  unknonw  unknwon  uknown  not known  not? found  notfound
            (?:could|can) ?n[o']t be (?:found|located)  can't be (?:found|located)  does ?n[o']t appear to exist
            ceased to exist  (?:has ?n[o']t|have ?n[o']t) been (?:found|located)
            (?:is|was|were)n't (?:found|known|valid|recogni[sz]ed|registered|assigned|listed|here)  not? ex[is]{1,3}ts?
            not existing
            not (?:in use any ?more|assigned|allocated|associated with any)  unassigned  unallocated  is vacant
             not on (?:file|record)
            (?:does|do|did|has|have)(?: not?|n't| nt|'nt|nt| never) (?:currently )?ex[is]{1,3}t(?:s|ed)?
            dos\w?n'?t ex[is]{1,3}t
            non-? ?exist(?:ent|ing|ant)?  (?:in|un)exist(?:ent|ing|ant)  never existed
            no longer (?:exists?|valid|in use|used|using|with|works?|employed|here|in service|on staff)
            no longer on (?:this|our|the|server)  no longer there  (?:does|do)(?: not|n't) belong to any
            not (?:a )?(?:valid|recogni[sz]ed|registered|listed|known|defined|present|a local|local to|here)  not ok
            inva(?:li|il)d  undeliverable  unroute?able  illegal  misspelled  unregistered  undefined  unused
            (?:is |has )?gone$  is gone  is no more  no more exists?  ceased  resigned  unlisted  unidentified
            not in use(?! by)
            is (?:bad|wrong|incorrect)  unrecogni[sz]ed  has changed (?:\w+ )?(?:e-?mail )?address
            has left  left (?:the|our) (?:company|organi[sz]ation)
            (?<!being )moved(?! to (?:another|a different|(?:\w+ )?new (?:\w+ )?(?:server|system|host|platform)))
            has been replaced by
        """,
        closed=r"""
            inactive  inactivated  disabled  deactivated  suspend(?:ed)?  deleted  removed  closed  cancell?ed
            terminated  expired  discontinued  retired  abandoned  dormant  frozen  archived  not active  not enabled
            not activated  (?<!temporary )(?<!temporarily )locked(?! by (?:another|a) process)  now disabled with
            de-?provisioned  decommissioned  revoked  invalidated  purged  erased  obsolete  is dead
            no longer (?:active|available|accepts?|accepting|receiv(?:es|ing)|monitored)  defunct  lapsed  withdrawn
            (?:switched|turned) off$
        """,
        full=r"is (?:too )?full",
        either=r"or  and/or",
        unable=r"(?:unable|not able) to receive  (?:can ?not|can't) (?:be accessed|receive)",
        samples=("Mailbox not found", "Mailbox disabled", "Mailbox full"), absent=r"\buser have no mail\b",
        seen="all servers; misspelled by bounces in lists of other tools"),
    ReplyLanguage(
        "French",
        nouns=r"""
            utilisateur  (?:nom du )?destinataires?  adresse(?: e-?mail| mail| [ée]lectronique)?  adressee  compte
            abonne
            bo[îi]te(?: aux? lettres?| mail| de reception)?  bal
        """,
        unknown=r"""
            inconnue?s?  inexistante?s?  introuvables?  n'? ?existe (?:pas|plus)
            n'est pas (?:connue?|valide|reconnue?|correcte?)  ne figure pas
            n'a pas [ée]t[ée] trouv[ée]e?  est erron[ée]e?
            a d[ée]m[ée]nag[ée]  a chang[ée]  (?:non|n'est pas) (?:recens|r[ée]pertori|enregistr)[ée]e?  non reconnue?
            invalides?
            non (?:trouvee?|valide)
            incorrecte?
        """,
        closed=r"""
            d[ée]sactiv[ée]e?s?  suspendue?s?  ferm[ée]e?s?  expir[ée]e?s?  supprim[ée]e?s?  archiv[ée]e?s?  inactive?
            n'est plus \w+  n'accepte plus  r[ée]sili[ée]e?
        """,
        full=r"pleine?  satur[ée]e?  d[ée]pass[ée]e?",
        either="ou", unable=r"ne (?:peut|peuvent) (?:pas |plus )?recevoir",
        samples=("Utilisateur inconnu", "Boite aux lettres desactivee", "Boite du destinataire pleine"),
        others=r"""
            (?:message|courriel|mail) (?:provenant )?d'une?  adresse (?:de retour|d'origine|source)  exp[ée]diteur
            [ée]metteur  envoyeur  mot de passe
        """,
        too_many=r"trop d[e']",
        domain=r"domaine  serveur",
        seen="Orange, Free, La Poste",
        exhausted=r"plus d'espace  espace[^.;]{0,20} (?:insuffisant|[ée]puis[ée])",
        absent=r"\bne (?:fait|travaille) plus (?:partie|chez|dans|pour)",
        none=r"aucune?  pas d[e']?  impossible de trouver  pas trouv[ée]",
        articles="tel  telle  l'  le  la  cet  cette  ce",
        refused=r"""
            non autoris[ée]  pas autoris[ée]  interdit  n'accepte(?! plus)  accepte (?:que|uniquement|seulement)
            qu'en interne  uniquement  (?<!qui )\ba (?:bloqu|refus)[ée]  seuls? les (?:membres|abonn[ée]s)
            r[ée]serv[ée]e? aux
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
            no (?:fue |ha sido |se ha )?(?:encontrad|localizad)[oa]  no (?:es|son) correct[oa]s?
            no (?:es )?v[áa]lid[oa]  inv.lid[oa]
            (?<!forma )incorrect[oa]  equivocad[oa]  err[óo]ne[oa]  no se encuentra  no se (?:encontr[óo]|reconoce)
            no (?:est[áa] )?registrad[oa]
            no figura  no (?:est[áa] )?listad[oa]
            ya no (?:se usa|est[áa]|trabaja|labora|forma parte|pertenece)
        """,
        closed=r"""
            desactivad[oa]  deshabilitad[oa]  inhabilitad[oa]  inactiv[oa]  suspendid[oa]  cancelad[oa]  cerrad[oa]
            dad[oa] de baja  (?:ha )?expirad[oa]  caducad[oa]  (?:elimin|borr)ad[oa]
        """,
        full=r"llen[oa]  excedid[oa]  sin espacio  satura(?:do|da)",
        either="o  u", unable=r"no pueden? recibir",
        samples=("Usuario desconocido", "Cuenta deshabilitada", "El buzon esta lleno"),
        others=r"(?:direcci[óo]n|cuenta|buz[óo]n) de (?:retorno|origen)  remitente  contrase[ñn]a  clave",
        too_many=r"demasiad[oa]s",
        domain=r"dominio  servidor  sintaxis",
        seen="servers in Spain and Latin America; lists of other tools",
        absent=r"""
            \bya no hay nadie con est?e (?:e-?mail|correo)
            \b(?:usuario|destinatario) no (?:tiene|posee) (?:una? |ninguna? )?(?:cuenta|buz[óo]n)
        """,
        none=r"""
            no (?:existe|hay|se encontr[óo]|conocemos a|reconocemos|corresponde a)
            no se \w+(?: podido)? (?:encontrar|localizar)
        """,
        articles="un  una  el  la  ningún  ninguna  ese  esa  este  esta  dicho  dicha  tal",
        exhausted=r"""
            (?:cuota|espacio)[^.;]{0,20}(?:excedid|superad|agotad|insuficiente)
            (?:excedid|superad|agotad)[oa][^.;]{0,12} (?:cuota|espacio)  (?:sin|no tiene) espacio
        """,
        refused=r"""
            no (?:est[áa] )?(?:autorizad|permitid|habilitad)[oa]
            (?:no|s[óo]lo|[úu]nicamente|solamente) (?:se )?acept\w+
            (?:s[óo]lo|[úu]nicamente|solamente) (?:los )?(?:miembros|suscriptores)
            \bha (?:bloquead|rechazad)o  permisos?
        """,
        not_served=r"""
            dominio[^.;]{0,12} no (?:\w+ )?(?:alojado|existe|v[áa]lido|permitido|local)
            \bno (?:gestiona|aloja|administra|atiende|maneja)\w*[^.;]{0,16} dominio
        """),
    ReplyLanguage(
        "Catalan",
        nouns=r"usuari  destinatari  b[úu]stia(?: de \w+)?  adre[çc]a(?: de correu| electr[òo]nica)?",
        unknown=r"""
            no existeix  desconeg(?:ut|uda)  no (?:s'ha |ha estat )?trobad?[at]?  inexistent
            no [ée]s (?:v[àa]lid|correct)[ea]?  inv[àa]lida?  no (?:est[àa] )?registrada?t?
        """,
        closed=r"desactivada?t?  donada?t? de baixa  suspesa?  cancel[·.]?lada?t?  eliminada?t?",
        full=r"plena?  superat la quota",
        either="o",
        samples=("L'usuari no existeix", "La bustia esta desactivada", "La bustia esta plena"),
        others=r"remitent  contrasenya", too_many=r"massa", domain=r"domini",
        seen="help pages of Catalan providers; standard phrases",
        none=r"no (?:hi ha|existeix|s'ha trobat|s'ha pogut trobar)", articles="cap  aquest  aquesta  el  la",
        refused=r"no (?:est[àa] )?(?:autoritza|perm[èe])\w*  correu brossa",
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
            n[ãa]o (?:est[áa] )?(?:cadastrad|listad|registrad|registad)[oa]  n[ãa]o consta  incorret[oa]  errad[oa]
            inv.lid[oa]
        """,
        closed=r"""
            desativad[oa]  desabilitad[oa]  inativ[oa]  suspens[oa]  encerrad[oa]  removid[oa]  cancelad[oa]
            expirou  exclu[íi]d[oa]  apagad[oa]
        """,
        full=r"chei[oa]  lotad[oa]  excedid[oa]  excedeu",
        either="ou", unable=r"n[ãa]o (?:podem?|conseguem?) receber",
        samples=("Usuario inexistente", "Conta desativada", "Caixa postal cheia"),
        others=r"(?:endere[çc]o|conta|caixa) de (?:origem|retorno)  remetente  senha", too_many=r"muit[oa]s",
        domain=r"dom[íi]nio  servidor",
        seen="UOL, Terra, Locaweb; bounces in lists of other tools",
        absent=r"""
            \be-?mail (?:inexistente|n[ãa]o (?:cadastrado|existe|encontrado))  \bn[ãa]o existe (?:o|este|esse) e-?mail
            \b(?:usu[áa]rio|destinat[áa]rio) n[ãa]o (?:tem|possui) (?:uma )?(?:conta|caixa)
        """,
        none=r"nenhuma?  n[ãa]o (?:h[áa]|existe)  n[ãa]o foi poss[íi]vel (?:encontrar|localizar)",
        articles="um  uma  nenhum  nenhuma  esse  essa  este  esta  tal  o  a",
        exhausted=r"""
            \bcota[^.;]{0,20}(?:excedid|atingid|ultrapassad)  espa[çc]o[^.;]{0,40}(?:esgotad|insuficiente)
            sem espa[çc]o  armazenamento[^.;]{0,30} atingid
        """,
        refused=r"""
            (?:n[ãa]o tem|sem) permiss[ãa]o  \bbloqueou  n[ãa]o (?:est[áa] )?(?:autorizad|permitid)[oa]
            (?:n[ãa]o|s[óo]|somente|apenas) (?:se )?aceit\w+
            (?:s[óo]|somente|apenas) (?:membros|assinantes)
        """,
        not_served=r"dom[íi]nio[^.;]{0,12} n[ãa]o (?:\w+ )?(?:hospedado|existe|atendido|local)"),
    ReplyLanguage(
        "Italian",
        nouns=r"""
            utente  casella(?: di posta| postale| pec| e-?mail)*  indirizzo(?: e-?mail| destinatario)?  destinatario
            dipendente
        """,
        unknown=r"""
            sconosciut[oaie]  inesistent[ei]
            non (?:[èe]'? )?(?:esiste(?:nte)?|trovat[oa]|valid[oa]|corrett[oa]|presente)
            errat[oa]  non [èe]'? stat[oa] trovat[oa]  non risulta\b
            non (?:lavora|fa|[èe]'?) pi[uù]'? (?:parte|in|presso|con)
            non (?:[èe]'? )?(?:registrat|conosciut|riconosciut|elencat)[oa]
        """,
        closed=r"""
            disabilitat[oa]  disat+ivat[oa]  inattiv[oa]  sospes[oa]  chius[oa]  scadut[oa]  cessat[oa]  non attiv[oa]
            bloccat[oa] per inutilizzo  eliminat[oa]  cancellat[oa]  rimoss[oa]  dismess[oa]
            non (?:[èe]'? )?piu'? (?:attiv[oa]|in uso|valid[oa]|utilizzat[oa])
        """,
        full=r"pien[oa]  esaurit[oa]",
        either="o  oppure",
        unable=r"non (?:pu[òo]'?|[èe]'? in grado di) ricevere",
        samples=("Utente sconosciuto", "Casella disattivata", "La casella e' piena"),
        others=r"indirizzo (?:di ritorno|di origine)  mittente  password", too_many=r"tropp[ie]", domain=r"dominio",
        seen="Aruba, Libero, Tiscali; lists of other tools",
        absent=r"\bdestin\. ?sconosciuto",
        none=r"""
            nessun[ao]?  non (?:esiste|c'e|corrisponde ad?)'?  impossibile trovare
            non (?:[èe]'? )?(?:stato )?possibile trovare
        """,
        articles="un  uno  una  il  la  alcun  alcuna  nessun  nessuna  questo  questa  tale  l'",
        exhausted=r"""
            spazio[^.;]{0,20}(?:esaurito|insufficiente)  quota[^.;]{0,20}(?:superata|esaurita)
            superato (?:la quota|lo spazio)
            raggiunto[^.;]{0,30} (?:capienza|spazio|quota)
            limite[^.;]{0,20} (?:di capienza|di spazio)[^.;]{0,20}raggiunt
        """,
        refused=r"""
            non (?:[èe]'? )?(?:autorizzat|abilitat|consentit|ammess)[oaie]  non accett\w+
            accett\w+ (?:sol[oaie]|soltanto|unicamente)  sol[oi] (?:gli |i )?(?:membri|iscritti)
            \bha bloccat[oa]
        """,
        not_served=r"dominio[^.;]{0,12} non (?:\w+'? )?(?:ospitato|gestito|esiste|locale)"),
    ReplyLanguage(
        "German",
        nouns=r"""
            benutzers?(?:name)?  nutzers?  empf(?:ae|ä)ngers?(?:adresse)?  postfach  konto  teilnehmer
            kunde(?! (?:inte|ej|hitta))  anwender
            adressat  (?:ziel|mail|e-?mail-?)?adresse  (?:benutzer|mail|e-?mail-?)konto  mitarbeiter(?:in)?
        """,
        unknown=r"""
            unbekannt\w*  nicht (?:bekannt|registriert|eingetragen|aufgef(?:ue|ü)hrt|gelistet)  (?:ist )?falsch
            nicht (?:korrekt|richtig)  nicht im (?:\S+)?(?:verzeichnis|adressbuch)
            existiert (?:hier |(?:auf|in|bei) \S+ (?:\S+ )?)?nicht  nicht gefunden
            nicht vorhanden
            ung(?:ue|ü)ltig\w*  unzustellbar  nicht (?:mehr )?(?:g(?:ue|ü)ltig|existent)  gibt es (?:hier )?nicht
            (?:unternehmen|haus|firma) verlassen
            nicht mehr (?:im|bei|besch(?:ae|ä)ftigt|t(?:ae|ä)tig|vorhanden)
        """,
        closed=r"""
            deaktiviert  geschlossen  stillgelegt  inaktiv  gel(?:oe|ö)scht  abgelaufen  nicht (?:mehr )?aktiv  gesperrt
            abgemeldet  gek(?:ue|ü)ndigt  entfernt  aufgel(?:oe|ö)st
            wird nicht (?:mehr|l(?:ae|ä)nger) (?:verwendet|genutzt|benutzt|gelesen|betreut)
        """,
        full=r"voll  (?:ue|ü)bervoll  (?:ue|ü)berf(?:ue|ü)llt  ersch(?:oe|ö)pft",
        either="oder  bzw  beziehungsweise",
        unable=r"kein\w* (?:\S+ )?empfangen (?:kann|k(?:oe|ö)nnen)  kann (?:\S+ )?kein\w* (?:\S+ )?empfangen",
        samples=("Benutzer unbekannt", "Postfach deaktiviert", "Postfach voll"),
        others=r"""
            von (?:eine[mr] )?unbekannt\w*  r(?:ue|ü)ck\w*adresse  ursprungsadresse  absender\w*  passwort  kennwort
        """, too_many=r"zu ?viele?",
        domain=r"domain  dom(?:ae|ä)ne  rechner",
        seen="GMX, WEB.DE, T-Online, local rules; lists of other tools",
        absent=r"""
            \bkein\w* (?:\w+ )?(?:benutzer|nutzer|empf(?:ae|ä)nger|postfach|konto|teilnehmer|mailbox)(?! angegeben)
            \bunbekannte\w* (?:benutzer|nutzer|empf(?:ae|ä)nger|adresse|konto)
            ^(?!(?:domain|dom(?:ae|ä)ne|server|host|absender\w*|ip)\b)\S+ wurde nicht in \S+ gefunden
            \bniemand unter dieser \S*adresse bekannt
            \bung(?:ue|ü)ltige\w* (?:benutzer|empf(?:ae|ä)nger\w*|\S*adresse)
        """,
        exhausted=r"""
            speicher\w*[^.;]{0,40}\b(?:voll|(?:ue|ü)berschritten|ersch(?:oe|ö)pft)  (?:ue|ü)berschritten
            zu ?viele (?:e-?)?mails auf  kein (?:freier )?(?:speicher\w*|platz)
        """,
        refused=r"""
            nicht (?:berechtigt|erlaubt|zugelassen|autorisiert)  nur per de-mail  darf \w*\s?keine?n?
            (?:akzeptiert|nimmt) (?:keine|nur)  \b(?:keine|nur) [^.;]{0,60}akzeptiert  nicht akzeptiert  nur intern\w*
            hat sie  hat (?:\S+ ){1,4}(?:blockiert|gesperrt)
            nur (?:f(?:ue|ü)r )?(?:mitglieder|abonnenten)
        """,
        not_served=r"""
            (?:domain|dom(?:ae|ä)ne)[^.;]{0,12} nicht (?:\w+ ){0,2}(?:gehostet|bekannt|zust(?:ae|ä)ndig|lokal)
            (?:domain|dom(?:ae|ä)ne)[^.;]{0,12} nicht (?:\w+ ){0,2}(?:verwaltet|betreut)
        """),
    ReplyLanguage(
        "Dutch",
        nouns=r"""
            gebruikers?(?:naam)?  ontvanger\w*  (?:(?:e-?)?mail-?)?adres(?:sen)?  postvak  postbus  brievenbus  abonnee
            geadresseerde\w*  medewerker\w*
        """,
        unknown=r"""
            onbekende?  bestaat (?:hier |helaas |simpelweg |echter )?niet  bestaan niet
            niet (?:gevonden|bekend|geldig|aanwezig|geregistreerd|(?:\S+ )?vermeld)  ongeldig
            k[ao]n niet (?:worden )?gevonden  opgeheven  verwijderd
            niet (?:meer|langer) (?:in gebruik|in dienst|werkzaam|geldig)  (?:is )?(?:onjuist|incorrect)
            niet-bestaande?
        """,
        closed=r"uitgeschakeld  geblokkeerd  niet (?:meer )?actief  inactief  afgesloten  opgeschort",
        full=r"vol  overvol", either="of",
        unable=r"kan (?:\S+ )?(?:geen|niet) [^.;]{0,20}ontvangen  geen (?:e-?)?mail kan ontvangen",
        samples=("Gebruiker onbekend", "Postvak uitgeschakeld", "Postvak is vol"),
        others=r"""
            bijlage\w*  van (?:een )?(?:onbekende|niet-bestaande|ongeldige)  afzender\w*  verzender\w*  wachtwoord\w*
            authenticatie  aanmeld\w*
        """,
        domain=r"domein\w*  server\w*", seen="KPN, Ziggo, Telenet, XS4ALL; standard phrases",
        before=r"onbekende?  ongeldige?  niet-bestaande?  geen (?:geldige?|bestaande?|dergelijke?)",
        absent=r"\bgeen (?:gebruiker|ontvanger|mailbox|postvak|account)\b(?! (?:opgegeven|vermeld))",
        error=r"fout\w*  reden\w*  opdracht", exhausted=r"\bquot\w+[^.;]{0,20}overschreden", message=r"bericht\w*",
        listed=r"zwarte lijst\w*", too_many=r"te veel",
        refused=r"""
            niet toegestaan  geen toestemming  accepteert geen  neemt geen (?:e-?)?mail
            heeft (?:\S+ ){1,4}geblokkeerd
        """,
        not_served=r"domein[^.;]{0,20} niet (?:\w+ )?(?:gehost|bekend)"),
    ReplyLanguage(
        "Swedish, Danish and Norwegian",
        nouns=r"""
            anv[äa]ndar\w*  mottagar\w*  (?:e-?(?:post|mail)-?)?adress\w*  brevl[åa]d\w*  konto\w*  bruger\w*
            modtager\w*  postkass\w*  bruker\w*  mottaker\w*  postboks\w*  e-?postkonto\w*  innboks\w*
        """,
        unknown=r"""
            ok[äa]n[dt]  [äa]r (?:inte|ej) (?:en |ett )?giltig[ta]?  er ikke (?:en |et )?gyldigt?  finns (?:inte|ej)
            (?:kunde )?(?:hittas|hittades) (?:inte|ej)  kunde (?:inte|ej) hittas
            existerar (?:inte|ej)  (?:inte|ej|ikke) (?:registrera[dt]|registrere[dt]|oppf[øo]rt|opf[øo]rt)
            (?:har|er) slut+[ae]t  forkert  felaktig[ta]?  ikke l[æa]ngere (?:gyldig|i brug)  (?:inte|ej) l[äa]ngre \w+
            ogiltig[ta]?  saknas  borttage[nt]  raderad  raderat  ukendte?
            findes (?:desv[æa]rre )?ikke  eksisterer ikke  ugyldige?  ikke fundet  kunne ikke findes  slettet  ukjente?
            finnes ikke  ikke funnet  nedlagt
        """,
        closed=r"""
            inaktiv\w*  avst[äa]ng[dt]  avsluta[dt]  oppsagt  opsagt  sp[äa]rra[dt]  lukket  deaktiver[eta]+d?
            sp[æa]rret  stengt  sperret
        """,
        full=r"[äa]r full[at]?  er (?:full|fuld)t?", either="eller",
        unable=r"(?:inte|ej|ikke) kan (?:ta emot|modtage|motta)  kan (?:inte|ej|ikke) (?:ta emot|modtage|motta)",
        samples=("Mottagaren finns inte", "Kontot inaktiverad", "Brevladan ar full"),
        others=r"""
            bilag\w*  vedh[æa]ft\w*  vedlegg\w*  fr[åa]n? (?:en |ett? )?(?:ok[äa]nd|ogiltig|ukendt|ukjent|ugyldig)\w*
            avs[äa]ndar\w*  afsender\w*  avsender\w*  l[öo]senord\w*  adgangskode\w*  passord\w*  autentiser\w*
        """,
        domain=r"dom[äa]n\w*  dom[æa]ne\w*  domene\w*  server\w*",
        seen="Telia, Telenor, TDC; GoDaddy help in Swedish; standard phrases",
        before=r"""
            ok[äa]nd  ogiltig  ukendt  ukjent  ugyldig  ingen (?:s[åa]dan|slik)  (?:fant|fandt) ikke  hittade inte
            (?:kunde|kunne) (?:inte|ikke) (?:hitta|finde|finne)  (?:gick|g[åa]r) (?:inte|ej) att hitta(?: den)?
            finner ikke
        """,
        absent=r"""
            \b(?:finn(?:s|es)|findes) ingen (?:anv[äa]ndare|brevl[åa]da|bruke?r|bruger|postkasse|konto)\b
            \bingen (?:anv[äa]ndare|bruger|bruker|mottagare|modtager|mottaker)\b(?! (?:angiv|oppgit))
        """,
        error=r"fel\w*  fejl\w*  feil\w*  orsak\w*  [åa]rsag\w*",
        exhausted=r"""
            lagringsutrymme\w*[^.;]{0,40}\bslut  n[åa]tt sin lagringsgr[äa]ns
            (?:kvot\w*|kvote\w*)[^.;]{0,20}(?:[öo]verskrid|overskred)
        """,
        message=r"meddeland\w*  besked\w*  melding\w*  meddelelse\w*",
        listed=r"svart ?list\w*  svarteliste\w*  sorte? ?liste\w*  sortlist\w*", too_many=r"f[öo]r m[åa]nga  for mange",
        reverse_dns=r"omv[äae]nd\w* dns",
        refused=r"""
            (?:inte|ej) till[åa]t\w+  till[åa]ts (?:inte|ej)  s[øo]ppelpost  ikke tilladt  ikke tillatt  skr[äa]ppost
            har (?:blockerat|sp[äa]rrat|blokeret|blokkert)
            tar inte emot  modtager ikke(?! fundet)
        """),
    ReplyLanguage(
        "Finnish",
        nouns=r"""
            k[äa]ytt[äa]j[äa]\w*  vastaanottaj\w*  (?:s[äa]hk[öo]posti)?osoit(?!e?muo)\w+  (?:s[äa]hk[öo])?postilaati\w+
            tili[äa]?  (?:k[äa]ytt[äa]j[äa]|s[äa]hk[öo]posti)tili\w*
        """,
        unknown=r"""
            tuntematon  ei l[öo]y(?:dy|tynyt|detty)  ei ole(?: (?:en[äa][äa] )?olemassa|(?=[.!)]|$| xurlx))
            virheellinen  v[äa][äa]r[äa]  ei (?:ole )?voimassa
            poistettu
        """,
        closed=r"suljettu  ei (?:ole )?(?:en[äa][äa] )?k[äa]yt[öo]ss[äa]  lukittu  j[äa][äa]dytetty",
        full=r"t[äa]ynn[äa]",
        either="tai", unable=r"ei voi vastaanottaa",
        samples=("Vastaanottajaa ei loydy", "Postilaatikko suljettu", "Postilaatikko on taynna"),
        others=r"liite\w*  l[äa]hett[äa]j\w+  salasana\w*  tunnistau\w*  todennus\w*",
        domain=r"verkkotunnu\w*  toimialue\w*  palvelin\w*  palvelime\w*",
        before=r"tuntematon  virheellinen  ei (?:t[äa]llaista|sellaista)", error=r"virhe\w*  syy\w*",
        message=r"viesti\w*", listed=r"musta\w* lista\w*  estolista\w*", too_many=r"liian mon\w+",
        reverse_dns=r"k[äa][äa]nteis\w+", refused=r"ei (?:ole )?sallittu  kielletty  roskaposti\w*  ei ota vastaan"),
    ReplyLanguage(
        "Estonian",
        nouns=r"kasutaja\w*  saaja\w*  adressaa\w+  (?:e-?posti ?)?aadress\w*  postkast\w*  konto\w*",
        unknown=r"""
            tundmatu  ei leitud  ei leia\w*  ei eksisteeri
            (?:ei ole|pole)(?: (?:olemas|registreeritud)|(?=[.!)]|$| xurlx))  vigane  vale  puudub  kehtetu
            kustutatud
        """,
        closed=r"suletud  blokeeritud  peatatud  deaktiveeritud", full=r"t[äa]is", either="või",
        samples=("Kasutajat ei leitud", "Konto on suletud", "Postkast on täis"),
        others=r"manus\w*  tundmatult  kasutajalt  saatja\w*  parool\w*  autenti\w*", domain=r"domeen\w*  server\w*",
        before=r"vale  vigane  tundmatu  kehtetu", error=r"viga(?!ne)\w*  p[õo]hjus\w*",
        message=r"kir[ij]a?\w*  s[õo]num\w*",
        listed=r"must\w* nimekir\w*", too_many=r"liiga palju  liiga mitu",
        refused=r"ei ole lubatud  pole lubatud  r[äa]mpspost\w*"),
    ReplyLanguage(
        "Latvian",
        nouns=r"lietot[āa]j\w*  sa[ņn][ēe]m[ēe]j\w*  adres[āa]t\w*  adrese\w*  pastkast\w*  kont[sau]\w*",
        unknown=r"""
            nav (?:\w+ )?atrast\w*  neeksist[ēe]\w*  nezin[āa]m[sai]  nav zin[āa]m[sai]  nav re[ģg]istr[ēe]t\w*
            dz[ēe]st[sa]  neder[īi]g[sa]  nav der[īi]g[sa]  nepareiz[sa]  nav(?=[.!)]|$| xurlx)
        """,
        closed=r"blo[ķk][ēe]t[sa]  sl[ēe]gt[sa]  deaktiv[ēei]\w+  neakt[īi]v[sa]  aptur[ēe]t[sa]  likvid[ēe]t[sa]",
        full=r"piln[sa]  p[āa]rpild[īi]t[sa]", either="vai",
        samples=("Lietotājs nav atrasts", "Konts ir bloķēts", "Pastkaste ir pilna"),
        others=r"pielikum\w*  no nezin[āa]m\w+  s[ūu]t[īi]t[āa]j\w*  parol\w+  autentifik\w+",
        domain=r"dom[ēe]n\w*  server\w*", seen="Inbox.lv; standard phrases",
        before=r"neeksist[ēe]  nezin[āa]m[sa]  nav t[āa]d\w*  nepareiz[sa]  neder[īi]g[sa]",
        error=r"k[ļl][ūu]d\w*  iemesl\w*",
        message=r"v[ēe]stul\w*  zi[ņn]ojum\w*", listed=r"meln\w+ sarakst\w*", too_many=r"p[āa]r[āa]k daudz",
        refused=r"nav at[ļl]auts  aizliegts  m[ēe]stul\w*"),
    ReplyLanguage(
        "Lithuanian",
        nouns=r"""
            vartotoj\w*  naudotoj\w*  gav[ėe]j\w*  adresat\w*  adres(?:as|o)  (?:pa[šs]to )?d[ėe][žz]ut\w*  paskyr\w*
        """,
        unknown=r"""
            nerast\w*  neegzistuoja  ne[žz]inom[aio]s?  n[ėe]ra(?=[.!)]|$| xurlx)  i[šs]trint\w*  neteising\w*
            neregistruot\w*  negalioja\w*
        """,
        closed=r"u[žz]blokuot\w+  i[šs]jungt\w+  sustabdyt\w+  u[žz]daryt\w+  panaikint\w+",
        full=r"piln[ao]s?  perpildyt\w+",
        either="arba", samples=("Vartotojas nerastas", "Paskyra užblokuota", "Pašto dėžutė perpildyta"),
        others=r"pried\w*  i[šs] ne[žz]inom\w+  siunt[ėe]j\w*  slapta[žz]od\w*  autentifik\w+",
        domain=r"domen\w*  server\w*",
        before=r"neegzistuoja  ne[žz]inom[aio]s?  neteising\w+  negaliojan\w+  n[ėe]ra toki\w*",
        error=r"klaid\w*  prie[žz]ast\w*", message=r"lai[šs]k\w*  prane[šs]im\w*", listed=r"juod\w+ s[ąa]ra[šs]\w*",
        too_many=r"per daug", refused=r"neleid[žz]iama\w*  draud[žz]iama\w*  [šs]lam[šs]t\w*"),
    ReplyLanguage(
        "Polish",
        nouns=r"""
            u[żz]ytkowni\w+  odbiorc\w+  skrzyn[kec]\w*(?: (?:pocztow\w+|odbiorcz\w+))?  kont[oau]  adresat\w*
            adres(?:u|em|y)?  abonent\w*  pracowni\w+
        """,
        unknown=r"""
            nie (?:\w+ )?istnieje  nieznan[yae]  nie (?:zosta[lł]\w* )?(?:od|z)nalezion\w+
            (?:nieprawid[lł]ow|niepoprawn)[yae]
            nieistniej[aą]c\w+  usuni[eę]t[yae]  nie figuruje  nie pracuje  b[lł][eę]dn[yae]  nieaktualn[yae]
            nie ma(?=[.!)]|$| xurlx)
            nie jest (?:znan\w+|zarejestrowan\w+|wymienion\w+)
        """,
        closed=r"""
            nieaktywn[aey]  zablokowan[aey]  zawieszon[aey]  wy[lł][aą]czon[aey]  zamkni[eę]t[aey]  skasowan[aey]
            wygas[lł][oa]
        """,
        full=r"pe[lł]n[aey]  przepe[lł]nion[aey]  zape[lł]nion[aey]", either="lub  albo",
        unable=r"nie mo[żz]e (?:\w+ )?(?:odbiera[ćc]|odebra[ćc])",
        samples=("Uzytkownik nie istnieje", "Konto zablokowane", "Skrzynka jest pelna"),
        others=r"""
            za[lł][aą]cznik\w*  od (?:nieznan|nieistniej|nieprawid)\w+  z (?:nieznan|nieistniej|nieprawid)\w+  nadawc\w+
            has[lł][oa]  uwierzyteln\w+  autoryz\w+  logowani\w+  zalogow\w+
        """,
        domain=r"domen\w+  serwer\w*", seen="WP, Onet, o2, Interia; smtp-gated in Polish; lists of other tools",
        before=r"""
            nieznany  nieznana  (?:nieprawid[lł]ow|niepoprawn|b[lł][eę]dn)[yae]  nieistniej[aą]c[yae]
            nie (?:ma|istnieje) (?:tu |tutaj )?tak\w+
            brak tak\w+  nie (?:zosta[lł]\w? )?(?:znaleziono|odnaleziono)
            nie mo[żz]na (?:od|z)nale[źz][ćc](?: (?:wprowadzon|podan)\w+)?
        """,
        absent=r"""
            \bbrak (?:skrzynki|u[żz]ytkownika|konta)\b(?! (?:nadawcy|podan))
            \bnieaktywn[ae] (?:skrzynka|konto)
        """,
        error=r"b[lł][aą]d\w*  pow[oó]d\w*  przyczyn\w*  sk[lł]adni\w*  format\w*",
        exhausted=r"""
            przekroczon[oya][^.;]{0,30}(?:limit|pojemno[śs]|quot|skrzynk)  osi[aą]gn\w+ limit (?:miejsca|pojemno)
            brak (?:wolnego )?miejsca[^.;]{0,30}(?:skrzyn|kon[tc])
        """,
        message=r"wiadomo[śs]\w+  poczt[ay]", listed=r"czarn\w+ li[śs][ct]\w+", too_many=r"zbyt wiel\w+  za du[żz]o",
        reverse_dns=r"odwrotn\w+ (?:dns|rekord\w*|wpis\w*|stref\w*)  revdns",
        refused=r"""
            brak uprawnie[ńn]  nie zezwala  antyspam\w*  nie przyjmuje  nie akceptuje  zabronion\w+  zablokowa[lł]a?
        """,
        not_served=r"domen\w+[^.;]{0,20} nie (?:jest )?(?:obs[lł]ugiwan|hostowan)\w*"),
    ReplyLanguage(
        "Czech and Slovak",
        nouns=r"""
            (?:po)?u[žz][ií]vate[lľ]\w*  (?:e-?mailov[áa] )?schr[áa]n[kc]\w+  p[řr][ií]jemc\w+  adres[áa]t\w*
            (?:e-?mailov[áa] )?adres[ayeu]  [úu][čc]e?t\w*
        """,
        unknown=r"""
            neexistuj[eí]  neexistujici\w*  nezn[áa]m[ýáyaé]  (?:ne|nebyl[ao]? |neni )nalezen[ao]?
            nebol[ao]? n[áa]jden\w*  nen[áa]jden\w*  sa nena[šs](?:iel|l[ao])  (?:se )?nepoda[řr]ilo (?:se )?naj[ií]t
            neplatn[áýaye]  zru[šs]en[ýáao]?  smaz[áa]n[ao]?  vymazan\w+
            odstran[ěe]n\w*  (?:zde|u n[áa]s) nen[ií](?=[.!)]|$| xurlx)  (?:tu|u n[áa]s) nie je(?=[.!)]|$| xurlx)
            (?:nen[ií]|nie je)(?: zde| tu)? (?:registrov[áa]n|veden|platn|spr[áa]vn)\w*  nespr[áa]vn\w+
        """,
        closed=r"zablokov[áa]n\w*  deaktivov[áa]n\w*  pozastaven\w*  neakt[íi]vn\w+",
        full=r"pln[áaéouýy]+  p[řr]epln[ěe]n\w+", either="nebo  alebo  či",
        unable=r"nem[ůuôo][žz]e p[řr][ií]j[ií]mat",
        samples=("Uzivatel neexistuje", "Schranka zablokovana", "Schranka je plna"),
        others=r"""
            p[řr][íi]loh\w+  od (?:nezn[áa]m|neplatn|neexistuj)\w+  z (?:nezn[áa]m|neplatn|neexistuj)\w+
            odes[íi]latel\w*  odosielate[ľl]?\w*  hesl\w+  autenti\w+  ov[ěe][řr]en\w+
        """,
        domain=r"dom[ée]n\w+  server\w*", seen="Seznam, C4, ASPone; standard phrases",
        before=r"neexistuje  nezn[áa]m[ýyáa]  neplatn[ýyáa]  neexistuj[íi]c[íi]",
        error=r"chyb\w*  d[ůu]vod\w*  form[áa]t\w*",
        exhausted=r"p[řr]ekro[čc]en\w*[^.;]{0,20}(?:kv[óo]t|limit)\w*  nedostatek m[íi]sta",
        message=r"zpr[áa]v\w+  spr[áa]v\w+", listed=r"[čc]ern\w+ listin\w*  [čc]iern\w+ listin\w*",
        too_many=r"p[řr][íi]li[šs] (?:mnoho|ve[ľl]a)", reverse_dns=r"reverzn\w+",
        refused=r"nen[ií] povolen\w*  nie je povolen\w*  zablokoval[ao]?  (?:zak[áa]z[áa]n|nevy[žz][áa]d[áa]?n)\w*",
        not_served=r"dom[ée]n\w+[^.;]{0,20} (?:nen[ií]|nie je) (?:\w+ )?(?:hostov|obsluhov)\w*"),
    ReplyLanguage(
        "Hungarian",
        nouns=r"""
            c[íi]m  felhaszn[áa]l[óo]\w*  c[íi]mzett\w*  posta(?:fi[óo]k|l[áa]d)\w*  e-?mail ?-?c[íi]m\w*
            (?:e-?mail ?-?)?fi[óo]k\w*
        """,
        unknown=r"""
            nem l[ée]tez\w+  ismeretlen  nem tal[áa]lhat[óo]  megsz[űu]nt  t[öo]r[öo]lve  helytelen
            (?:nincs|nem) (?:regisztr[áa]l\w+|[ée]rv[ée]nyes)  [ée]rv[ée]nytelen
        """,
        closed=r"letiltv?a?  le van tiltva  inakt[íi]v  felf[üu]ggesztv?e?  z[áa]rolva  t[öo]r[öo]lt[ée]k  lej[áa]rt",
        full=r"megtelt  tele van",
        either="vagy", unable=r"nem tud \S+ fogadni",
        samples=("A felhasznalo nem letezik", "A fiok letiltva", "A postafiok megtelt"),
        others=r"""
            mell[ée]klet\w*  (?:felhaszn[áa]l[óo]|c[íi]mzett)\w*t[óo]l  c[íi]mr[őo]l  felad[óo]\w*  k[üu]ld[őo]\w*
            jelsz[óo]\w*  hiteles[íi]t\w*
        """,
        domain=r"tartom[áa]ny\w*  szerver\w*", seen="Freemail, Citromail; standard phrases",
        before=r"ismeretlen  [ée]rv[ée]nytelen  nem l[ée]tez[őo]  nincs ilyen", error=r"hib[aá]\w*  ok\b",
        message=r"lev[ée]l\w*  level\w*  [üu]zenet\w*", listed=r"fekete ?list\w*  tilt[óo]list\w*",
        too_many=r"t[úu]l sok", reverse_dns=r"ford[íi]tott dns  reverz",
        refused=r"nem enged[ée]lyezett  nem fogad  lev[ée]lszem[ée]t\w*"),
    ReplyLanguage(
        "Romanian",
        nouns=r"""
            utilizator(?:ul)?  destinatar(?:ul(?:ui)?)?  adresa  cont(?:ul)?
            c[ăa]su[țt][ăa](?: po[șs]tal[ăa])?  cutia(?: po[șs]tal[ăa])?
        """,
        unknown=r"""
            necunoscut[ăa]?  nu exist[ăa]  inexistent[ăa]?
            nu (?:a fost|este|e) (?:g[ăa]sit|valid|[îi]nregistrat|cunoscut|corect)[ăa]?  invalid[ăa]?  incorect[ăa]?
            gre[șs]it[ăa]?
        """,
        closed=r"dezactivat[ăa]?  suspendat[ăa]?  blocat[ăa]?  [șs]te?a?rs[ăa]?  [îi]nchis[ăa]?",
        full=r"plin[ăa]?",
        either="sau",
        samples=("Utilizator necunoscut", "Contul dezactivat", "Casuta este plina"),
        others=r"expeditor\w*  parola", too_many=r"prea mult[ie]", domain=r"domeniu\w*",
        none=r"nu exist[ăa]", articles="nici un  nici o  niciun  nicio  nici  un  o  acest  această",
        refused=r"nu este permis[ăa]?  nu accept[ăa]",
        exhausted=r"spa[țt]iu\w*[^.;]{0,12} insuficient  cot[aă] (?:a fost )?dep[ăa][șs]it[ăa]",
        not_served=r"domeniu\w*[^.;]{0,12} nu (?:\w+ )?(?:g[ăa]zduit|exist[ăa]|local)"),
    ReplyLanguage(
        "Croatian, Serbian and Slovene",
        nouns=r"""
            korisni[kc]\w*  primatelj\w*  primal[ac]\w*  uporabnik\w*  prejemnik\w*  sandu[čc]\w*  naslov[au]?
            naslovni\w+
            adres[ae]  pretin\w+(?: e-po[šs]te)?  (?:po[šs]tni )?predal\w*  nalog  ra[čc]un\w*  корисни[кц]\w*
            прима[лоц]\w*  сандуче\w*  налог  адрес[ае]
        """,
        unknown=r"""
            ne postoji  nepoznat[aio]?  ne obstaja  neznan[aio]?  ni (?:bil\w? )?(?:znan|najden)\w*  nije prona[đd]en\w*
            ni (?:mogo[čc]e|bilo mogo[čc]e) najti  nepostoje[ćc]\w+  ni (?:registriran|veljav|pravil)\w*  neveljav\w+
            nije (?:poznat|registr[io]|ispravn|va[žz]e[ćc]|valjan)\w*  (?:neva[žz]e[ćc]|neispravn)\w+  izbrisan\w*
            obrisan\w*  не постоји  непознат[аио]?
            није (?:пронађен|важећ|исправн|регистрован)\w*  (?:неважећ|обрисан)\w*
        """,
        closed=r"""
            onemog[ou][ćčc]en\w*  ukinut\w*  ukinjen\w*  ugašen\w*  deaktivir\w+  isklju[čc]en\w*  zaklju[čc]an\w*
            blokiran\w*  suspend(?:ov|ir)an\w*
        """,
        full=r"pun[aou]?  prepun(?:jen)?[aou]?  препуњен[ао]?  poln[aio]?  prepoln\w*  пун[ао]?",
        either="ili  ali  или",
        not_served=r"domen\w*[^.;]{0,20} (?:ni|nije) (?:\w+ )?(?:gost|host)\w*",
        exhausted=r"(?:pre[kc]ora[čc]en|prese[žz]en|prema[šs]en)\w* (?:\w+ )?kvot\w+",
        samples=("Korisnik ne postoji", "Korisnik onemogucen", "Sanducic je pun"),
        others=r"""
            privit\w+  prilog\w*  priponk\w+  od (?:nepoznat|neznan)\w+  s nepoznat\w+  од непознат\w+
            po[šs]iljatelj\w*  po[šs]iljal\w*  lozink\w+  gesl\w+  пошиља\w+  autenti\w+
        """,
        domain=r"domen\w*  streznik\w*", seen="EUnet, Arnes; standard phrases",
        before=r"""
            ne postoji  ne obstaja  не постоји  nepoznat[ai]?  neznan[ai]?
            (?:nepostoje[ćc]|nepravil|neveljav|neva[žz]e[ćc]|neispravn)\w+
            nema (?:takvog|takve|tog|te)  ni (?:tega|te|takega|take)
            непознат[аи]?  нема таквог  непостојећ\w+
        """,
        error=r"(?:po)?gre[šs]k\w+  napak\w+  razlog\w*", message=r"poruk\w+  sporo[čc]il\w*",
        listed=r"crn\w+ list\w+  [čc]rn\w+ list\w+", too_many=r"previ[šs]e  preve[čc]",
        reverse_dns=r"povratn\w+ dns  reverzn\w+",
        refused=r"nije (?:dopu[šs]ten|dozvoljen)\w*  ni dovoljen\w*  ne[žz]e?l?j?en\w* po[šs]t\w*"),
    ReplyLanguage(
        "Russian",
        nouns=r"""
            пользовател\w+  получател\w+  адресат\w*  (?:почтов\w+ )?ящик\w*  адрес[аеу]?  (?:электронн\w+ )?адрес[аеу]?
            учетн\w+ запис\w+  аккаунт\w*  абонент\w*  сотрудник\w*
        """,
        unknown=r"""
            не (?:был[ао]? )?(?:найден[ао]?|обнаружен[ао]?)  не существует  несуществующ\w+
            неизвест(?:ен|на|но|ный|ная|ное)  неверн(?:ый|ая|ое|о)  неправильн\w+  недействител\w+  некорректн\w+
            отсутствует(?! (?:прав|доступ|разреш))
            не зарегистрирован[ао]?  удал[её]н[ао]?  больше не (?:работает|используется)  не значится  не указан[ао]?
            уволен[ао]?
        """,
        closed=r"заблокирован[ао]?  отключен[ао]?  закрыт[ао]?  неактив[её]?н[ао]?  приостановлен[ао]?",
        full=r"переполнен[ао]?  заполнен[ао]?  полон", either="или  либо",
        samples=("Пользователь не найден", "Ящик заблокирован", "Почтовый ящик переполнен"),
        others=r"""
            вложени\w+  от (?:неизвестн|несуществующ)\w+  с (?:неизвестн|несуществующ|неверн)\w+  отправител\w+
            обратн\w+ (?:адрес|ящик)\w*
            парол\w+  авториз\w+  аутентифик\w+  проверк\w+ подлинности
        """,
        domain=r"домен\w*  сервер\w*  хост\w*",
        seen="Mail.ru, Rambler; delivery logs in public repositories; standard phrases",
        before=r"""
            (?:неправильн|недействительн|некорректн)\w+  нет так\w+  неизвестный  неверный  несуществующий
            не (?:найден|существует)
        """,
        absent=r"""
            \bтак\w+ (?:почтов\w+ )?(?:пользовател|получател|адрес|ящик|абонент)\w* (?:здесь |тут |у нас )?нет
            \bздесь таких нет  \b(?:пользователь|абонент) удалил (?:\w+ ){0,2}(?:адрес|ящик)
        """,
        error=r"ошибк\w+  причин\w+  формат\w*  синтаксис\w*  команд\w+",
        exhausted=r"""
            (?:превышен\w*|превысил\w*) (?:\w+ )?квот[аыу]  лимит[^.;]{0,60}(?:ящик|мест)[^.;]{0,30}превышен
            (?:нет|недостаточно) (?:свободного )?места в (?:почтовом )?ящике
        """,
        message=r"письм\w+  сообщени\w+", listed=r"черн\w+ спис\w+  стоп-?лист\w*", too_many=r"слишком мног\w+",
        reverse_dns=r"обратн\w+ (?:зон|запис|dns)\w*",
        refused=r"""
            бел\w+ спис\w+  доступ запрещ[её]н  не разрешен[оа]?  разрешен\w* только  запрещен\w*  спам\w*
            не принимает  не разрешено  разрешени\w+  заблокировал[ао]?
        """,
        not_served=r"домен\w*[^.;]{0,20} не (?:обслужива|размещ)\w*  не (?:принима|обслужива)\w+[^.;]{0,30} домен\w*"),
    ReplyLanguage(
        "Ukrainian",
        nouns=r"""
            користувач\w*  одержувач\w*  отримувач\w*  адресат\w*  (?:поштов\w+ )?скриньк\w+  обліков\w+ запис\w*
            адрес[аиу]
        """,
        unknown=r"""
            не (?:було )?знайдено  не існує  неіснуюч\w+  невідом(?:ий|а|о)  видалено  не зареєстрован\w*  невірн\w+
            неправильн\w+  недійсн\w+  більше не (?:працює|існує|використ\w+)
            відсутн(?:ій|я|є)  немає?(?=[.!)]|$| xurlx)
        """,
        closed=r"заблокован\w*  вимкнен\w*  призупинен\w*  деактивован\w*", full=r"переповнен\w*  заповнен\w*",
        either="або  чи", unable=r"не може (?:\w+ )?отримувати",
        samples=("Користувача не знайдено", "Скриньку заблоковано", "Скринька переповнена"),
        others=r"""
            вкладен\w+  від (?:невідом|неіснуюч)\w+  з (?:невідом|неіснуюч)\w+  відправник\w*  парол\w+  автентифік\w+
            авториз\w+  зворотн\w+ адрес\w*
        """,
        domain=r"домен\w*  сервер\w*", seen="Ukr.net, i.ua; standard phrases",
        before=r"(?:неправильн|невірн|недійсн)\w+  невідом(?:ий|а)  нема[є]? так\w+  не (?:знайдено|існує)",
        error=r"помилк\w+  причин\w+",
        exhausted=r"перевищено (?:\w+ )?квот[уи]", message=r"лист\w*  повідомлен\w+", listed=r"чорн\w+ спис\w+",
        too_many=r"забагато  занадто багато", reverse_dns=r"зворотн\w+ (?:зон|запис|dns)\w*",
        refused=r"заборонен\w*  доступ заборонено  дозвол\w*  не приймає  заблокував",
        not_served=r"домен\w*[^.;]{0,20} не обслугову\w*"),
    ReplyLanguage(
        "Bulgarian and Macedonian",
        nouns=r"""
            потребител\w*  получател\w*  (?:(?:пощенск\w+|имейл|електронн\w+) )?(?:кути\w+|адрес\w*)  акаунт\w*
            корисник\w*  примач\w*
        """,
        unknown=r"""
            не съществува  не (?:е |беше )?намерен[ао]?  не постои  неизвест(?:ен|на|но)  непознат[ао]?  изтрит[ао]?
            не е регистриран\w*  невалид(?:ен|на)  греш(?:ен|на)  неправил(?:ен|на)
        """,
        closed=r"блокиран\w*  деактивиран\w*  спрян\w*  закрит\w*", full=r"пълн[аои]  пълен  препълнен\w*  полн[ао]",
        either="или", samples=("Потребителят не съществува", "Акаунтът е блокиран", "Пощенската кутия е пълна"),
        others=r"""
            прикачен\w*  от (?:неизвест|непознат|невалид)\w+  од непознат\w*  подател\w*  изпращач\w*  парол\w+
            автентик\w+
        """,
        domain=r"домейн\w*  домен\w*  сървър\w*", seen="Abv.bg; standard phrases",
        before=r"""
            не съществува(?: такъв| такава)?  не постои  няма(?: такъв| такава| такова)?  неизвест(?:ен|на)
            непознат  невалид(?:ен|на)  нема таков
        """,
        error=r"грешк\w+  причин\w+", message=r"съобщени\w+  писмо\w*", listed=r"чер(?:ен|н\w+) спис\w+",
        exhausted=r"(?:надвишен|превишен|изчерпан)\w* (?:\w+ )?квот\w+",
        too_many=r"твърде много", reverse_dns=r"обрат\w+ (?:зон|запис|dns)\w*",
        refused=r"забранен\w*  не е разрешен\w*  не приема"),
    ReplyLanguage(
        "Slavic languages and Greek in Latin letters",
        nouns=r"""
            pol'?zovate?l\w*  poluchatel\w*  (?:pochtov\w+ )?(?:y|j|i)?a(?:sch|shch|sh|sc)ik\w*  korystuvach\w*
            potrebitel\w*  xristis  xrh?sths  chrh?sths  christis
        """,
        unknown=r"""
            ne na[jiy]?d[eyo]+n\w*  ne su(?:sch|shch|sh|sc)h?estvu[ey]t  ne znay?deno  ne isnuye?  ne sa?y?shtestvuva
            neizvest(?:en|na|ny[jiy]?)  den (?:y|i|u)par[xc]h?ei  den vrethike
        """,
        closed=r"zablo[ck]k?irovan\w*  otk?l[yj]u?chen\w*  zablokovan\w*", full=r"perepoln[ei]n\w*  perepovnen\w*",
        either="ili  abo", samples=("Polzovatel ne najden", "Polzovatel zablokirovan", "Yaschik perepolnen"),
        others=r"otpravitel\w*  vidpravnyk\w*  apostoleas  parol\w*", domain=r"domen\w*  server\w*",
        seen="local rules of servers without UTF-8; standard phrases",
        absent=r"\btak\w+ (?:pol'?zovatel|poluchatel|adres|a?ya(?:sh|sch)?chik)\w* net\b",
        before=r"net tak\w+  nemaye? tak\w+  nyama taka?v\w*  neizvestny[jiy]?"),
    ReplyLanguage(
        "Turkish",
        nouns=r"kullan[iı]c[iı]\w*  al[iı]c[iı]\w*  posta kutu\w*  (?:posta )?hesa[pb]\w*  adres\w*",
        unknown=r"""
            bulunamad[iı]  bulunmuyor  bulunmamaktad[iı]r  mevcut de[ğg]il\w*  ge[çc]ersiz  bilinmiyor
            (?:tan[iı]ml[iı]|kay[iı]tl[iı]) de[ğg]il  listelenm\w+  silin(?:di|mi[şs])\w*  hatal[iı]  yanl[iı][şs]
            kullan[iı]lm(?:[iı]yor|amaktad[iı]r)
        """,
        closed=r"kapat[iı]l\w+  kapal[iı]  devre d[iı][şs][iı]  ask[iı]ya al[iı]n\w+  engellen\w+",
        full=r"dolu  dolmu[şs]  doldu", either="veya  ya da", unable=r"(?:posta|ileti) alam[iı]yor",
        samples=("Kullanici bulunamadi", "Hesap devre disi", "Posta kutusu dolu"),
        others=r"""
            eki  ekli  (?:kullan[iı]c[iı]|adres|al[iı]c[iı]|hesap)\w*[dt][ae]n  g[öo]nderen\w*  g[öo]nderici\w*
            [şs]ifre\w*  parola\w*  kimlik do[ğg]rula\w+
        """,
        domain=r"alan ad[iı]\w*  etki alan[iı]\w*  sunucu\w*", seen="translations on backlink.name; standard phrases",
        before=r"yanl[iı][şs]  hatal[iı]  bilinmeyen  ge[çc]ersiz  tan[iı]ms[iı]z",
        absent=r"\b(?:kullan[iı]c[iı]|al[iı]c[iı]|posta kutusu|hesap|ki[şs]i) yok(?:tur)?\b",
        error=r"bi[çc]im\w*  hata(?!l[iı])\w*  neden\w*  komut\w*",
        exhausted=r"kota\w* (?:a[şs][iı]l|dol)\w+  depolama s[iı]n[iı]r\w+ ula[şs]\w+", message=r"mesaj\w*  ileti\w*",
        listed=r"kara liste\w*", too_many=r"[çc]ok fazla  [çc]ok say[iı]da", reverse_dns=r"ters dns",
        refused=r"izin veril\w+  aktarma\w*  yetki\w*  kabul etmiyor  engelledi"),
    ReplyLanguage(
        "Greek",
        nouns=r"χρήστη\w*  παραλήπτη\w*  διεύθυνσ\w+  γραμματοκιβώτι\w+  θυρίδα\w*  λογαριασμ\w+",
        unknown=r"""
            δεν είναι (?:έγκυρ|σωστ|καταχωρημέν)\w+  (?:λανθασμέν|εσφαλμέν)\w+  δεν υπάρχει  δεν υφίσταται
            δεν (?:έχει )?βρέθηκε  άγνωστ[οη]ς?  άκυρ[οη]ς?  διαγράφηκε  έχει διαγραφεί
        """,
        closed=r"απενεργοποι\w+  ανενεργ\w+  ανασταλεί  κλειδωμ\w+", full=r"πλήρες  πλήρης  γεμάτ\w+", either="ή",
        unable=r"δεν μπορεί να (?:λάβει|παραλάβει)",
        samples=("Ο χρήστης δεν υπάρχει", "Ο λογαριασμός απενεργοποιημένος", "Το γραμματοκιβώτιο είναι πλήρες"),
        others=r"συνημμέν\w+  από  αποστολέ\w+  κωδικό\w+", domain=r"τομέα\w*  διακομιστή\w*",
        seen="OTEnet; standard phrases",
        before=r"""
            άγνωστ[οη]ς?  άκυρ[οη]ς?  (?:λανθασμέν|εσφαλμέν)\w+  δεν (?:υπάρχει|βρέθηκε)(?: τέτοι\w+| [οη])?
            δεν (?:ήταν|είναι) δυνατή η εύρεση(?: της| του)?
        """,
        error=r"σφάλμα\w*  λόγο\w*",
        message=r"μήνυμα\w*  μηνύμα\w+", listed=r"μαύρη λίστα", too_many=r"πάρα πολλ\w+  πολλοί παραλήπτες",
        refused=r"δεν επιτρέπεται  ανεπιθύμητ\w+"),
    ReplyLanguage(
        "Arabic",
        nouns=r"""
            (?:ال)?مستخدم  (?:ال)?مستلم  (?:ال)?عنوان(?: البريد(?: الإلكتروني)?)?  صندوق البريد  (?:ال)?حساب
            (?:ال)?مستقبل  البريد الإلكتروني  (?:ال)?مرسل إليه
        """,
        unknown=r"غير موجودة?  غير معروفة?  غير صالحة?  غير صحيحة?  خاطئة?  غير مسجل  محذوف  لا يوجد(?=[.!)]|$| xurlx)",
        closed=r"معطل  مغلق  موقوف  محظور", full=r"ممتلئة?", either="أو", unable=r"لا يمكنه تلقي",
        samples=("المستخدم غير موجود", "الحساب معطل", "صندوق البريد ممتلئ"),
        others=r"مرفق  من (?:مستخدم|عنوان|حساب)  (?:ال)?مرسل(?! إليه)  كلمة", domain=r"(?:ال)?نطاق  (?:ال)?خادم",
        before=r"لا يوجد(?: هذا)?  لم يتم العثور على(?: هذا)?",
        absent=r"تم (?:حذف|إغلاق|تعطيل) (?:هذا )?(?:ال)?(?:حساب|مستخدم)", error=r"خطأ  سبب", message=r"(?:ال)?رسالة",
        listed=r"القائمة السوداء", too_many=r"كثير جدا  عدد كبير", refused=r"غير مسموح  مزعج"),
    ReplyLanguage(
        "Hebrew",
        nouns=r"ה?משתמש  ה?נמען  ה?כתובת(?: ה?מייל| ה?דוא.ל)?  ה?תיבה  תיבת (?:ה?דואר|ה?מייל)  ה?חשבון",
        unknown=r"(?:לא|אינו|אינה|איננו|איננה) (?:קיים|קיימת|נמצאה?|מוכרת?|ידועה?|רשום|רשומה|תקינה?)  שגויה?  נמחקה?",
        closed=r"מושבת  חסום  סגור  מושעה", full=r"מלאה", either="או", unable=r"(?:לא|אינה|אינו) יכולה? לקבל",
        samples=("המשתמש לא קיים", "החשבון מושבת", "תיבת הדואר מלאה"),
        others=r"צרופה  ממשתמש  מכתובת  ה?שולח  ה?סיסמה  אימות", domain=r"ה?דומיין  ה?שרת", before=r"אין",
        error=r"שגיאה  סיבה", message=r"ה?הודעה", listed=r"רשימה שחורה  הרשימה השחורה", too_many=r"יותר מדי",
        refused=r"אינו מורשה  דואר זבל"),
    ReplyLanguage(
        "Chinese",
        nouns=r"""
            用户  用戶  使用者  收件人  收信人  收件者  邮箱  郵箱  信箱  [帐账帳賬][号户號戶]  (?<!ip)(?<!ip )地址
        """,
        unknown=r"""
            不存在  未找到  找不到  未开通  未開通  未(?:在[^,.;。、,]{0,8})?(?:注册|註冊)  已?注销  已?註銷
            已?(?:被)?删除  已?(?:被)?刪除  已?[离離][职職]
            [无無]效  未知
        """,
        closed=r"禁用  停用  冻结  凍結  锁定  鎖定  过期  過期  停权  停權  挂起  封停",
        full=r"""
            已满  已滿  满了  空间不足  空間不足  超额  容量满  容量不足
            超[过過](?:其|了)?(?:存储|存儲|儲存)?(?:配额|配額|容量)
        """,
        either="或者  或",
        samples=("用户不存在", "帐号已被禁用", "邮箱已满"),
        others=r"""
            附件  来自  來自  发件人  寄件人  寄件者  发信人  發件人  發信人  密码  密碼  认证  認證  验证  驗證  授权
            授權
        """,
        domain=r"域名  域  網域  服务器  伺服器  主机  主機", seen="Coremail, QQ, NetEase, in help pages about bounces",
        before=r"""
            未知的?  [无無]效的?  不存在的?  (?:没有?|沒有?|未|[无無]法)找到(?:此|该|該|这个|這個)?
            找不到(?:此|该|該|这个|這個|您(?:输入|輸入|指定)的(?:电子邮件|電子郵件)?)?  查[无無]  没有?(?:此|该|这个)
            沒有?(?:此|該|這個)  [无無](?:此|该|該)
        """,
        absent=r"""
            (?:没有|沒有|查?无|查?無)(?:此|该|該|這個|这个)(?:使用者|人)
            系[统統]中[没沒]有(?:收件人|收件者|用户|用戶|邮箱|信箱)
        """,
        error=r"错误  錯誤  原因  格式  命令",
        listed=r"黑名单  黑名單", too_many=r"过多  太多  大量  過多", reverse_dns=r"反向  反解",
        refused=r"""
            拒[绝絕收][^,.;,。]{0,20}(?:不存在|未知|[无無]效|找不到)  不允许  不允許  白名单  白名單  禁止  垃圾  转发
            轉發
        """,
        spaced=False),
    ReplyLanguage(
        "Japanese",
        nouns=r"ユーザー?  受信者  受取人  宛先  あて先  送信先  (?:メール ?)?アドレス  メールボックス  アカウント",
        unknown=r"""
            存在しま?せん?  存在しない  (?:ディレクトリ|名簿)に(?:は)?(?:あり|載って(?:い)?)ません  見つかりません
            見つからない  登録されていません  登録がありません  不明
            使われて(?:おり|い)ません  使用されて(?:おり|い)ません  削除され
        """,
        closed=r"停止  無効  解約  凍結  ロック",
        full=r"いっぱい  一杯  容量を?超  容量超過  容量オーバー  格納域の制限を超え  満杯",
        either="または  もしくは  か、",
        samples=("ユーザーが存在しません", "アカウントは停止されています", "メールボックスがいっぱいです"),
        others=r"添付  (?<![つて])から  送信者  送信元  差出人  パスワード  認証",
        domain=r"ドメイン  サーバー?  ホスト", seen="dream.jp help pages; standard phrases",
        before=r"存在しない  不明な  未知の  無効な  登録されていない  見つからない",
        absent=r"""
            (?:ユーザー?|受信者|宛先|アドレス|アカウント|メールボックス)(?:は|が)(?:い|あり|ござい)ません
            (?:ユーザー?|アカウント|メールボックス)(?:が|は)[な無]い
        """,
        error=r"エラー  理由  原因  コマンド", listed=r"ブラックリスト", too_many=r"多すぎ  大量",
        reverse_dns=r"逆引き", refused=r"中継  ホワイトリスト  受信拒否  迷惑  スパム  許可されて  制限", spaced=False),
    ReplyLanguage(
        "Korean",
        nouns=r"사용자  수신자  받는 ?사람  메일함  편지함  사서함  (?:메일 ?)?계정  (?:메일 ?|이메일 ?)?주소  아이디",
        unknown=r"존재하지 ?않  찾을 수 ?없  알 수 ?없  등록되지 ?않  삭제된  탈퇴  잘못되  올바르지 ?않  유효하지 ?않",
        closed=r"정지  비활성  휴면  해지  중지", full=r"가득  용량 ?초과  용량이 ?초과  용량을 ?초과  할당량을 ?초과",
        either="또는  혹은  거나", samples=("사용자가 존재하지 않습니다", "휴면 계정입니다", "메일함이 가득 찼습니다"),
        others=r"첨부  로부터  에게서  발신  송신자  보낸  보내는 ?사람  비밀번호  인증",
        domain=r"도메인  서버  호스트", seen="Naver, Daum, in help pages about bounces",
        before=r"존재하지 ?않는  없는  알 수 ?없는  등록되지 ?않은  유효하지 ?않은  잘못된  삭제된",
        absent=r"탈퇴한 (?:회원|사용자|계정)  (?:사용자|수신자|계정|주소)(?:(?:가|이) 없습니다| ?없음)",
        error=r"오류  에러  이유  형식",
        listed=r"블랙리스트  차단 ?목록", too_many=r"너무 ?많", reverse_dns=r"역방향",
        refused=r"화이트리스트  차단  수신 ?거부  스팸  허용되지", spaced=False),
    ReplyLanguage(
        "Thai",
        nouns=r"ผู้ใช้  ผู้รับ  กล่องจดหมาย  กล่องเมล  บัญชี  (?:ที่อยู่)?อีเมล",
        unknown=r"ไม่มีอยู่  ไม่มีตัวตน  ไม่พบ  ไม่ถูกต้อง", closed=r"ระงับ  ปิดใช้งาน  ปิดการใช้งาน  ล็อก",
        full=r"เต็ม", either="หรือ", samples=("ไม่พบผู้ใช้", "บัญชีถูกระงับ", "กล่องจดหมายเต็ม"),
        others=r"ไฟล์แนบ  จาก  ผู้ส่ง  รหัสผ่าน", domain=r"โดเมน  เซิร์ฟเวอร์", before=r"ไม่พบ  ไม่มี  ไม่รู้จัก",
        error=r"ข้อผิดพลาด  สาเหตุ", listed=r"บัญชีดำ", too_many=r"มากเกินไป", refused=r"ไม่อนุญาต  สแปม",
        spaced=False),
    ReplyLanguage(
        "Indonesian and Malay",
        nouns=r"pengguna  penerima  akun  akaun  alamat(?: e-?mail)?  kotak (?:surat|masuk)  peti mel",
        unknown=r"""
            tidak (?:dapat )?(?:ditemukan|dikenal|terdaftar|ada|valid|dijumpai|wujud)
            (?:telah )?(?:dihapus|dipadam\w*)  tidak sah  salah(?! satu)
        """,
        closed=r"dinonaktifkan  ditutup  diblokir  tidak aktif  digantung  ditangguhkan", full=r"penuh", either="atau",
        samples=("Pengguna tidak ditemukan", "Akun dinonaktifkan", "Kotak surat penuh"),
        others=r"""
            lampiran  dari (?:pengguna|penerima|akun|alamat)  pengirim  penghantar  kata sandi  otentikasi  autentikasi
        """,
        domain=r"domain  server", seen="GoDaddy and mtarget help in Indonesian; standard phrases", before=r"tidak ada",
        error=r"kesalahan  alasan", message=r"pesan  surat elektronik", listed=r"daftar hitam",
        too_many=r"terlalu banyak", refused=r"tidak diizinkan  tidak dibenarkan  kebijakan"),
    ReplyLanguage(
        "Vietnamese",
        nouns=r"ng[uư][oờ]i (?:d[uù]ng|nh[aậ]n)  [dđ][iị]a ch[iỉ](?: e-?mail)?  h[oộ]p th[uư]  t[aà]i kho[aả]n",
        unknown=r"kh[oô]ng (?:c[oò]n )?(?:[dđ][uú]ng|t[oồ]n t[aạ]i|t[iì]m th[aấ]y|h[oợ]p l[eệ]|x[aá]c [dđ][iị]nh)",
        closed=r"b[iị] (?:kh[oó]a|v[oô] hi[eệ]u h[oó]a|[dđ][iì]nh ch[iỉ])  [dđ][aã] (?:b[iị] )?(?:[dđ][oó]ng|x[oó]a)",
        full=r"[dđ][aầ]y",
        exhausted=r"[dđ][ạa]t [dđ][ếe]n gi[ớo]i h[ạa]n dung l[uư][ợo]ng", either="hoac  hoặc",
        samples=("Nguoi dung khong ton tai", "Tai khoan bi khoa", "Hop thu day"),
        others=r"""
            [dđ][ií]nh k[eè]m  t[uừ] (?:ng[uư][oờ]i|[dđ][iị]a ch[iỉ]|t[aà]i kho[aả]n)  ng[uư][oờ]i g[uử]i
            m[aậ]t kh[aẩ]u  x[aá]c th[uự]c
        """,
        domain=r"t[eê]n mi[eề]n  m[aá]y ch[uủ]", seen="GoDaddy and Mat Bao help; standard phrases",
        before=r"kh[oô]ng (?:t[iì]m th[aấ]y|t[oồ]n t[aạ]i|c[oó])", error=r"l[oỗ]i  l[yý] do", message=r"th[uư] n[aà]y",
        listed=r"danh s[aá]ch [dđ]en", too_many=r"qu[aá] nhi[eề]u",
        refused=r"kh[oô]ng [dđ][uư][oợ]c ph[eé]p  th[uư] r[aá]c"),
    ReplyLanguage(
        "Persian",
        nouns=r"کاربری?  گیرنده  نشانی  آدرس  صندوق(?: پستی)?  حساب(?: کاربری)?",
        unknown=r"یافت نشد  پیدا نشد  وجود ندارد  ناشناخته  ناشناس  نامعتبر  نادرست  اشتباه  حذف شده",
        closed=r"غیر ?فعال  مسدود  بسته",
        full=r"پر (?:است|شده)", either="یا", samples=("کاربر یافت نشد", "حساب غیرفعال", "صندوق پر است"),
        others=r"پیوست  از (?:کاربر|آدرس|نشانی)  فرستنده  رمز", domain=r"دامنه  سرور", error=r"خطا\w*  دلیل",
        message=r"پیام", listed=r"لیست سیاه", too_many=r"بیش از حد", refused=r"مجاز نیست  هرزنامه"),
    ReplyLanguage(
        "Icelandic",
        nouns=r"notand\w+  vi[ðd]takand\w+  netf[aö]ng\w*  p[óo]sth[óo]lf\w*  reikning\w*",
        unknown=r"""
            f[ia]nnst ekki  (?:er|eru) ekki (?:til|gil[dt]\w*|skr[áa][ðd]\w*|[þt]ekkt\w*)  [óo][þt]ekkt\w+
            [óo]gil[dt]\w*
        """,
        closed=r"loka[ðd]\w*  [óo]virk\w*", full=r"fullt  fullur", either="eða",
        samples=("Notandi finnst ekki", "Reikningi lokað", "Pósthólfið er fullt"),
        others=r"sendand\w+  lykilor[ðd]\w*", domain=r"l[ée]ni?[ðd]?  net[þt]j[óo]n\w*",
        before=r"rang[tu]\w*  [óo][þt]ekkt\w+  [óo]gil[dt]\w*", error=r"villa\w*", message=r"skeyti\w*",
        refused=r"ekki leyf\w+  ruslp[óo]st\w*"),
    ReplyLanguage(
        "Basque",
        nouns=r"erabiltzaile\w*  hartzaile\w*  postontzi\w*  helbide\w*  kontu\w*",
        unknown=r"ez da (?:existitzen|aurkitu)  ezezagun\w*  okerra  ez dago(?=[.!)]|$| xurlx)",
        closed=r"desgaitu\w*  itxi(?:ta)?  blokeatu\w*", full=r"bete(?:ta)?", either="edo",
        samples=("Erabiltzailea ez da existitzen", "Kontua desgaituta", "Postontzia beteta dago"),
        others=r"igorle\w*  bidaltzaile\w*  pasahitz\w*", domain=r"domeinu\w*  zerbitzari\w*"),
    ReplyLanguage(
        "Kazakh",
        nouns=r"пайдаланушы\w*  алушы\w*  (?:пошта )?жәші[гк]\w*  мекенжай\w*  тіркелгі\w*",
        unknown=r"табылмады  белгісіз  тіркелмеген  жарамсыз  жоқ(?=[.!)]|$| xurlx)",
        closed=r"бұғатталған  өшірілген  жабылған",
        full=r"толы  толған", either="немесе",
        samples=("Пайдаланушы табылмады", "Тіркелгі бұғатталған", "Пошта жәшігі толы"),
        others=r"жіберуші\w*  құпиясөз\w*", before=r"қате  белгісіз  жарамсыз", domain=r"домен\w*  сервер\w*"),
    ReplyLanguage(
        "Georgian",
        nouns=r"მომხმარებ\w+  მიმღებ\w+  ყუთი\w*  მისამართ\w+  ანგარიშ\w+",
        unknown=r"ვერ მოიძებნა  არ (?:მოიძებნა|არსებობს)  უცნობი\w*  არასწორი\w*",
        closed=r"დაბლოკილი\w*  გათიშული\w*  გაუქმებული\w*",
        full=r"სავსეა?  გადავსებული\w*", either="ან",
        samples=("მომხმარებელი ვერ მოიძებნა", "ანგარიში დაბლოკილია", "საფოსტო ყუთი სავსეა"),
        others=r"გამგზავნ\w+  პაროლ\w+", before=r"არასწორი  უცნობი", domain=r"დომენ\w+  სერვერ\w+"),
    ReplyLanguage(
        "Armenian",
        nouns=r"օգտատեր\w*  ստացող\w*  փոստարկղ\w*  հասցե\w*  հաշիվ\w*", unknown=r"չի գտնվել  գոյություն չունի  անհայտ",
        closed=r"արգելափակված\w*  անջատված\w*", full=r"լի է  լցված\w*", either="կամ",
        samples=("Օգտատերը չի գտնվել", "Հաշիվը արգելափակված է", "Փոստարկղը լի է"),
        others=r"ուղարկող\w*  գաղտնաբառ\w*", before=r"սխալ  անհայտ", domain=r"դոմեն\w*  սերվեր\w*"),
    ReplyLanguage(
        "Hindi",
        nouns=r"उपयोगकर्ता  प्राप्तकर्ता  मेलबॉक्स  इनबॉक्स  ईमेल पता  खाता",
        unknown=r"नहीं मिला  मौजूद नहीं  अमान्य  अज्ञात  गलत",
        closed=r"बंद  निष्क्रिय  अक्षम  निलंबित", full=r"भर (?:गया|चुका)  भरा हुआ", either="या",
        samples=("उपयोगकर्ता नहीं मिला", "खाता निष्क्रिय", "मेलबॉक्स भर गया है"),
        others=r"प्रेषक  पासवर्ड", domain=r"डोमेन  सर्वर", before=r"अज्ञात  अमान्य  ऐसा कोई", spaced=False),
)
# fmt: on
