"""Mails that report a delivery, as mail systems write them: built from short descriptions, for several tests.

Each shape names the system, the recipient that is reported and the outcome that is right. The texts are the standard
phrases of these systems; everything else is made up.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

ADA = "ada@firm.example"
DATE = "Tue, 03 Mar 2026 10:15:00 +0100"
SENT = f"From: News <news@shop.example>\nTo: Ada <{ADA}>\nSubject: March\nMessage-ID: <m1@shop.example>\n\nHello\n"


@dataclass(frozen=True)
class Shape:
    """One mail and what it says."""

    name: str
    data: bytes
    outcome: str | None  # None: not a delivery report
    address: str = ADA


def mail(
    body,
    *,
    sender="MAILER-DAEMON@mx.shop.example",
    subject="Undelivered Mail Returned to Sender",
    **fields,
):
    """A mail in plain text, or with the content type given."""
    head = {"From": sender, "To": "news@shop.example", "Subject": subject, "Date": DATE}
    head |= {name.replace("_", "-"): value for name, value in fields.items()}
    return ("".join(f"{name}: {value}\n" for name, value in head.items()) + "\n" + body).encode()


def recipient(
    status, diagnostic=None, *, action="failed", to=ADA, original=None, kind="rfc822", **fields
):
    """The fields of one recipient, RFC 3464 2.3."""
    rows = [f"Original-Recipient: {kind};{original}"] if original else []
    rows += [f"Final-Recipient: {kind}; {to}", f"Action: {action}"]
    rows += [f"Status: {status}"] if status else []
    rows += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    rows += [f"Diagnostic-Code: {diagnostic}"] if diagnostic else []
    return "\n".join(rows)


def dsn(
    *recipients,
    text="Your message could not be delivered.",
    returned=SENT,
    status_type="delivery-status",
    **fields,
):
    """A multipart/report of RFC 6522."""
    parts = [
        f"Content-Type: text/plain; charset=utf-8\n\n{text}\n",
        f"Content-Type: message/{status_type}\n\nReporting-MTA: dns; mx.shop.example\nArrival-Date: {DATE}\n\n"
        + "\n\n".join(recipients)
        + "\n",
        f"Content-Type: message/rfc822\n\n{returned}",
    ]
    body = "".join(f"--BB\n{part}\n" for part in parts) + "--BB--\n"
    content = {
        "Content_Type": 'multipart/report; report-type=delivery-status; boundary="BB"',
        "MIME_Version": "1.0",
    }
    return mail(body, **content, **fields)


def complaint(*fields, returned=SENT):
    """An abuse report of RFC 5965."""
    rows = "\n".join(["Feedback-Type: abuse", "User-Agent: FBL/1", "Version: 1", *fields])
    body = (
        f"--BB\nContent-Type: text/plain\n\nThis is an email abuse report.\n\n--BB\n"
        f"Content-Type: message/feedback-report\n\n{rows}\n\n--BB\nContent-Type: message/rfc822\n\n{returned}\n--BB--\n"
    )
    kind = "multipart/report; report-type=feedback-report; boundary=BB"
    return mail(body, sender="fbl@provider.example", subject="complaint", Content_Type=kind)


def postfix(status, reply, *, action="failed", human=None):
    """Postfix: the same reply in the text and in the report."""
    said = human or f"host mx.firm.example[192.0.2.25] said: {reply} (in reply to RCPT TO command)"
    text = f"This is the mail system at host mx.shop.example.\n\n<{ADA}>: {said}\n"
    diagnostic = f"X-Postfix; {human}" if human else f"smtp; {reply}"
    return dsn(
        recipient(status, diagnostic, action=action, original=ADA),
        text=text,
        Auto_Submitted="auto-replied",
    )


def qmail(reason, subject="failure notice"):
    text = (
        "Hi. This is the qmail-send program at shop.example.\nI'm afraid I wasn't able to deliver your message to the "
        "following addresses.\nThis is a permanent error; I've given up. Sorry it didn't work out.\n\n"
        f"<{ADA}>:\n{reason}\n\n--- Below this line is a copy of the message.\n\n{SENT}"
    )
    return mail(text, subject=subject)


def exim(reason, *, delayed=False):
    lead = (
        "This message was created automatically by mail delivery software.\n\nA message that you sent has not yet been "
        "delivered to one or more of its\nrecipients after more than 24 hours on the queue on mx.shop.example.\n\n"
        "The address to which the message has not yet been delivered is:\n\n"
        if delayed
        else "This message was created automatically by mail delivery software.\n\nA message that you sent could not be "
        "delivered to one or more of its\nrecipients. This is a permanent error. The following address(es) failed:\n\n"
    )
    text = f"{lead}  {ADA}\n    {reason}\n\n------ This is a copy of the message, including all the headers. ------\n\n{SENT}"
    fields = {} if delayed else {"X_Failed_Recipients": ADA}
    subject = (
        "Warning: message 1abc delayed 24 hours"
        if delayed
        else "Mail delivery failed: returning message to sender"
    )
    return mail(
        text,
        subject=subject,
        sender="Mail Delivery System <Mailer-Daemon@mx.shop.example>",
        **fields,
    )


def sendmail(*, reason=None, transcript="", heading="permanent fatal errors"):
    lines = [f"   ----- The following addresses had {heading} -----", f"<{ADA}>"]
    lines += [f"    (reason: {reason})"] if reason else []
    lines += [
        "",
        "   ----- Transcript of session follows -----",
        "... while talking to mx.firm.example.:",
        transcript,
    ]
    text = "The original message was received at Tue, 3 Mar 2026 10:00:00 +0100\n\n" + "\n".join(
        lines
    )
    return mail(
        f"{text}\n\n   ----- Original message follows -----\n\n{SENT}",
        subject="Returned mail: see transcript for details",
    )


def exchange(code, text, *, status=None, lead="Delivery has failed to these recipients or groups:"):
    body = f"{lead}\n\n{ADA}\n\nDiagnostic information for administrators:\n\nGenerating server: EX1.shop.example\n"
    return dsn(
        recipient(status or code, f"smtp;{text}"),
        text=body,
        subject="Undeliverable: March",
        sender="Microsoft Outlook <MicrosoftExchange329e71ec88ae4615bbc36ab6ce41109e@shop.example>",
    )


GMAIL = "The email account that you tried to reach"
SHAPES = (
    # --- hard: the mailbox or the domain does not exist, or is disabled
    Shape("postfix unknown", postfix("5.1.1", f"550 5.1.1 <{ADA}>: Recipient address rejected: User unknown in virtual mailbox table"), "hard"),
    Shape("postfix local unknown", postfix("5.1.1", "", human='unknown user: "ada"'), "hard"),
    Shape("postfix no domain", postfix("5.4.4", "", human="Host or domain name not found. Name service error for name=firm.example type=A: Host not found"), "hard"),
    Shape("postfix no records", postfix("5.4.4", "", human="Host or domain name not found. Name service error for name=firm.example type=AAAA: Host found but no data record of requested type"), "hard"),
    Shape("postfix null mx", postfix("5.1.0", "", human="Domain firm.example does not accept mail (nullMX)"), "hard"),
    Shape("gmail unknown", dsn(recipient("5.1.1", f"smtp; 550-5.1.1 {GMAIL} does not exist. Please try\n 550-5.1.1 double-checking the recipient's email address for typos or\n 550-5.1.1 unnecessary spaces. Learn more at\n 550 5.1.1 https://support.example/mail/?p=NoSuchUser a1si - gsmtp", Remote_MTA="dns; gmail-smtp-in.l.google.com")), "hard"),
    Shape("gmail disabled", dsn(recipient("5.2.1", f"smtp; 550-5.2.1 {GMAIL} is inactive. Learn more at\n 550 5.2.1 https://support.example/mail/?p=DisabledUser - gsmtp")), "hard"),
    Shape("gmail sends, nxdomain", dsn(recipient("5.1.2", "smtp; DNS Error: DNS type 'mx' lookup of firm.example responded with code NXDOMAIN\n Domain name not found: firm.example", to=ADA), sender="Mail Delivery Subsystem <mailer-daemon@googlemail.com>", subject="Delivery Status Notification (Failure)"), "hard"),
    Shape("gmail sends, unknown", dsn(recipient("5.1.1", f"smtp; 550 5.1.1 <{ADA}>: Email address could not be found, or was misspelled (G8)", X_Original_Message_ID="<m1@shop.example>"), sender="mailer-daemon@googlemail.com"), "hard"),
    Shape("outlook.com unavailable", dsn(recipient("5.5.0", "smtp;550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302).")), "hard"),
    Shape("exchange recipient not found", exchange("5.1.1", "550 5.1.1 RESOLVER.ADR.RecipNotFound; not found"), "hard"),
    Shape("exchange online 5.1.10", exchange("5.1.10", "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient ada@firm.example not found by SMTP address lookup"), "hard"),
    Shape("exchange online edge block", exchange("5.4.1", "550 5.4.1 Recipient address rejected: Access denied. [MN1PEPF0001.prod.outlook.com 2026-03-03T09:15:00.000Z]"), "hard"),
    Shape("exchange online no domain", exchange("5.4.310", "550 5.4.310 DNS domain firm.example does not exist [Message=InfoDomainNonexistent]"), "hard"),
    Shape("exchange online nested", exchange("5.0.350", "550 5.0.350 Remote server returned an error -> 550 5.1.1 <ada@firm.example> User unknown"), "hard"),
    Shape("exchange 2003 text", mail(f"Your message did not reach some or all of the intended recipients.\n\n      Subject:\tMarch\n      Sent:\t3/3/2026 10:12 AM\n\nThe following recipient(s) could not be reached:\n\n      {ADA} on 3/3/2026 10:13 AM\n            The e-mail account does not exist at the organization this message was sent to.  Check the e-mail address, or contact the recipient directly to find out the correct address.\n            <mail.firm.example #5.1.1 smtp;550 5.1.1 User unknown>\n", sender="System Administrator <postmaster@shop.example>", subject="Undeliverable: March"), "hard"),
    Shape("exchange german", exchange("5.1.1", "550 5.1.1 RESOLVER.ADR.ExRecipNotFound; not found", lead="Fehler bei der Nachrichtenzustellung an folgende Empfänger oder Gruppen:"), "hard"),
    Shape("exchange text block", mail(f"Delivery has failed to these recipients or groups:\n\nAda\nThe e-mail address you entered couldn't be found.\n\nDiagnostic information for administrators:\n\nGenerating server: firm.example\n\n{ADA}\n#550 5.1.1 RESOLVER.ADR.RecipNotFound; not found ##\n\nOriginal message headers:\n\nReceived: from x\n", sender="postmaster@firm.example", subject="Undeliverable: March"), "hard"),
    Shape("exim unknown", exim(f"SMTP error from remote mail server after RCPT TO:<{ADA}>:\n    host mx.firm.example [192.0.2.25]: 550 5.1.1 <{ADA}>: User unknown"), "hard"),
    Shape("exim unrouteable", exim("Unrouteable address"), "hard"),
    Shape("exim no mail service", exim("an MX or SRV record indicated no SMTP service"), "hard"),
    Shape("exim dead exchanges", exim("all relevant MX records point to non-existent hosts"), "hard"),
    Shape("exim report", dsn(recipient("5.0.0", "smtp; 550 No such person at this address.", Remote_MTA="dns; mx.firm.example"), subject="Mail delivery failed: returning message to sender"), "hard"),
    Shape("sendmail report", dsn(recipient("5.1.1", f"SMTP; 550 5.1.1 <{ADA}>... User unknown", Remote_MTA="DNS; mx.firm.example", Last_Attempt_Date=DATE), subject="Returned mail: see transcript for details"), "hard"),
    Shape("sendmail text", sendmail(reason=f"550 5.1.1 <{ADA}>... User unknown", transcript=f">>> DATA\n<<< 550 5.1.1 <{ADA}>... User unknown\n550 5.1.1 <{ADA}>... User unknown"), "hard"),
    Shape("sendmail without reason", sendmail(transcript=f">>> RCPT To:<{ADA}>\n<<< 550 5.1.1 <{ADA}>: Recipient address rejected: User unknown\n550 5.1.1 <{ADA}>... User unknown"), "hard"),
    Shape("sendmail host unknown", sendmail(reason="550 Host unknown", transcript=f"550 5.1.2 <{ADA}>... Host unknown (Name server: firm.example: host not found)"), "hard"),
    Shape("qmail mailbox", qmail("Sorry, no mailbox here by that name. (#5.1.1)"), "hard"),
    Shape("qmail remote", qmail(f"192.0.2.25 does not like recipient.\nRemote host said: 550 5.1.1 <{ADA}>: Recipient address rejected: User unknown in local recipient table\nGiving up on 192.0.2.25."), "hard"),
    Shape("qmail no host", qmail("Sorry, I couldn't find any host named firm.example. (#5.1.2)"), "hard"),
    Shape("qmail disabled", qmail("192.0.2.25 does not like recipient.\nRemote host said: 550 5.2.1 This mailbox has been disabled\nGiving up on 192.0.2.25."), "hard"),
    Shape("yahoo closed", qmail(f"Remote host said: 554 delivery error: dd This user doesn't have a firm.example account ({ADA}) [0] - mta1.mail.yahoo.com [BODY]", subject="Failure Notice"), "hard"),
    Shape("yahoo report", dsn(recipient("5.0.0", "smtp; 552 1 Requested mail action aborted, mailbox not found")), "hard"),
    Shape("amazon ses", dsn(recipient("5.1.1", "smtp; 550 5.1.1 user unknown", original=ADA), sender="MAILER-DAEMON@amazonses.com", subject="Delivery Status Notification (Failure)"), "hard"),
    Shape("domino report", dsn(recipient("5.1.1", f"X-Notes; User ada ({ADA}) not listed in Domino Directory"), subject="DELIVERY FAILURE: User ada not listed in Domino Directory"), "hard"),
    Shape("domino text", mail(f"Your message\n\n  Subject: March\n\nwas not delivered to:\n\n  {ADA}\n\nbecause:\n\n  User ada ({ADA}) not listed in Domino Directory\n", sender="postmaster@firm.example", subject="DELIVERY FAILURE: User ada not listed in Domino Directory"), "hard"),
    Shape("groupwise", dsn(recipient("5.1.1", "smtp; 550 ada@firm.example No such recipient"), sender="Mailer-Daemon@firm.example", subject="Mail Status"), "hard"),
    Shape("zimbra", dsn(recipient("5.1.1", f"smtp; 550 5.1.1 <{ADA}>: Recipient address rejected: firm.example", original=ADA)), "hard"),
    Shape("mimecast", dsn(recipient("5.0.0", "smtp;550 Invalid Recipient - https://community.mimecast.com/docs/DOC-1369#550 [abc.de101]")), "hard"),
    Shape("proofpoint", dsn(recipient("5.1.1", f"smtp; 550 5.1.1 User Unknown {ADA}")), "hard"),
    Shape("ironport", dsn(recipient("5.1.0", "smtp; 5.1.0 - Unknown address error 550-'5.1.1 <ada@firm.example>: Recipient address rejected: User unknown' (delivery attempts: 0)")), "hard"),
    Shape("barracuda", dsn(recipient("5.1.1", "smtp; 550 No such user (ada@firm.example)")), "hard"),
    Shape("mail.ru", dsn(recipient("5.0.0", "smtp; 550 Message was not accepted -- invalid mailbox.  Local mailbox ada@firm.example is unavailable: user not found")), "hard"),
    Shape("yandex", dsn(recipient("5.7.1", "smtp; 550 5.7.1 No such user!")), "hard"),
    Shape("orange.fr", dsn(recipient("5.1.1", "smtp; 550 5.1.1 Adresse d'au moins un destinataire invalide. Invalid recipient. OFR204_418 [418]")), "hard"),
    Shape("t-online", dsn(recipient("5.0.0", "smtp; 550-5.1.1 unknown user / Teilnehmer existiert nicht\n 550 5.1.1 TOS")), "hard"),
    Shape("gmx", dsn(recipient("5.0.0", "smtp; 550 Requested action not taken: mailbox unavailable"), sender="GMX Mailer Daemon <mailer-daemon@gmx.example>"), "hard"),
    Shape("libero", dsn(recipient("5.1.1", "smtp; 550 5.1.1 Utente sconosciuto")), "hard"),
    Shape("terra", dsn(recipient("5.1.1", "smtp; 550 5.1.1 El usuario no existe")), "hard"),
    Shape("uol", dsn(recipient("5.1.1", "smtp; 550 5.1.1 Conta de destino desativada")), "hard"),
    Shape("163.com", dsn(recipient("5.0.0", "smtp; 550 User not found: ada@firm.example")), "hard"),
    Shape("status alone", dsn(recipient("5.1.1")), "hard"),
    Shape("rfc 6533", dsn(recipient("5.1.1", "smtp; 550 5.1.1 User unknown", to="жук@firm.example", kind="utf-8"), status_type="global-delivery-status"), "hard", "жук@firm.example"),
    Shape("rfc 6533 embedded", dsn(recipient("5.1.1", "smtp; 550 5.1.1 User unknown", to=r"\x{436}@firm.example", kind="utf-8")), "hard", "ж@firm.example"),
    Shape("forwarded to the same name", dsn(recipient("5.1.1", "smtp; 550 5.1.1 User unknown", to="ada@firm.onmicrosoft.example", original=ADA)), "hard"),
    Shape("quotes around the name", dsn(recipient("5.1.1", "smtp; 550 5.1.1 User unknown", to=ADA, original='"ada"@firm.example')), "hard", '"ada"@firm.example'),
    Shape("lower-case fields, no type", dsn(f"final-recipient: <{ADA}>\naction: failed\nstatus: 5.1.1 (bad destination mailbox address)"), "hard"),
    Shape("address in the copy only", dsn("Action: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 User unknown"), "hard"),
    Shape("courier", dsn(recipient("5.0.0", f"smtp; 550 User unknown. Invalid user {ADA}", Remote_MTA="dns; mx.firm.example [192.0.2.25]"), subject="NOTICE: mail delivery status."), "hard"),
    Shape("base64 report", dsn(recipient("5.1.1", "smtp; 550 5.1.1 User unknown")).replace(
        b"Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx.shop.example\nArrival-Date: " + DATE.encode() + b"\n\n" + recipient("5.1.1", "smtp; 550 5.1.1 User unknown").encode(),
        b"Content-Type: message/delivery-status\nContent-Transfer-Encoding: base64\n\n" + base64.encodebytes(recipient("5.1.1", "smtp; 550 5.1.1 User unknown").encode())), "hard"),
    Shape("notes", mail(f"------- Failure Reasons  --------\n\nUser not listed in public Name & Address Book\n{ADA}\n\n------- Returned Message --------\n\n{SENT}", sender="MAILER-DAEMON@firm.example", subject="Undeliverable message"), "hard"),
    Shape("sendmail 5", mail(f"   ----- Transcript of session follows -----\n550 <{ADA}>... User unknown\n\n   ----- Unsent message follows -----\n{SENT}", subject="Returned mail: User unknown"), "hard"),
    Shape("gmx text", mail(f'A message that you sent could not be delivered. The following address\nfailed:\n\n"{ADA}":\nSMTP error from remote server after RCPT command:\nhost: mx.firm.example\n5.1.1 <{ADA}>... User Unknown\n\n\n--- The header of the original message is following. ---\n\n{SENT}', subject="Mail delivery failed: returning message to sender"), "hard"),
    Shape("opensmtpd", mail(f"    Hi!\n\n    This is the MAILER-DAEMON, please DO NOT REPLY to this e-mail.\n\n{ADA}: 550 5.1.1 <{ADA}>... User Unknown\n\n    Below is a copy of the original message:\n\n{SENT}", subject="Delivery status notification: error"), "hard"),
    Shape("zoho", mail(f"This message was created automatically by mail delivery software.\n\n{ADA} Invalid Address, ERROR_CODE :550, ERROR_CODE :5.1.1 <{ADA}>... User Unknown\n\n", sender="mailer-daemon@mail.zoho.example"), "hard"),
    Shape("imail", mail(f"Unknown user: {ADA}\n\nOriginal message follows.\n\n{SENT}", sender="Postmaster <postmaster@firm.example>", subject="Undeliverable Mail"), "hard"),
    Shape("gmail, old form", mail(f"Delivery to the following recipient failed permanently:\n\n     {ADA}\n\nTechnical details of permanent failure: \nGoogle tried to deliver your message, but it was rejected.\n\nThe error that the other server returned was:\n550 5.1.1 <{ADA}>... User Unknown\n\n----- Original message -----\n\n{SENT}", sender="mailer-daemon@googlemail.com", subject="Delivery Status Notification (Failure)"), "hard"),
    Shape("fields in the text", mail(f"An error occurred while trying to deliver the mail to the following recipients:\n{ADA}\n\nTechnical report:\n\nReporting-MTA: dns; mx.shop.example\nAction: failed\nFinal-Recipient: rfc822; {ADA}\nDiagnostic-Code: smtp; 550 5.1.1 User Unknown\nStatus: 5.1.1\n"), "hard"),
    Shape("wrong boundary", dsn(recipient("5.1.1", "smtp; 550 5.1.1 User unknown")).replace(b'boundary="BB"', b'boundary="CC"'), "hard"),
    Shape("two blank lines", dsn("\n\n" + recipient("5.1.1", "smtp; 550 5.1.1 User unknown")), "hard"),
    # --- blocked: the sender or the message was refused
    Shape("spamhaus", postfix("5.7.1", "554 5.7.1 Service unavailable; Client host [192.0.2.7] blocked using zen.spamhaus.org"), "blocked"),
    Shape("outlook.com block list", dsn(recipient("5.7.1", "smtp;550 5.7.1 Unfortunately, messages from [192.0.2.7] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3150).")), "blocked"),
    Shape("exchange online banned", exchange("5.7.606", "550 5.7.606 Access denied, banned sending IP [192.0.2.7]"), "blocked"),
    Shape("exchange auth required", exchange("5.7.1", "550 5.7.1 RESOLVER.RST.AuthRequired; authentication required"), "blocked"),
    Shape("exchange not authorised", exchange("5.7.1", "550 5.7.1 RESOLVER.RST.NotAuthorized; not authorized"), "blocked"),
    Shape("exchange relay", exchange("5.7.54", "550 5.7.54 SMTP; Unable to relay recipient in non-accepted domain"), "blocked"),
    Shape("gmail spam", dsn(recipient("5.7.1", "smtp; 550-5.7.1 [192.0.2.7 12] Our system has detected that this message is\n 550-5.7.1 likely unsolicited mail. To reduce the amount of spam sent to Gmail,\n 550 5.7.1 this message has been blocked.")), "blocked"),
    Shape("gmail dmarc", dsn(recipient("5.7.26", "smtp; 550-5.7.26 Unauthenticated email from shop.example is not accepted due to\n 550 5.7.26 domain's DMARC policy.")), "blocked"),
    Shape("yahoo policy", qmail("Remote host said: 554 5.7.9 Message not accepted for policy reasons. See https://postmaster.example/error"), "blocked"),
    Shape("yahoo tss", dsn(recipient("5.0.0", "smtp; 553 5.7.1 [TSS09] All messages from 192.0.2.7 will be permanently deferred; Retrying will NOT succeed.")), "blocked"),
    Shape("spf", postfix("5.7.23", "550 5.7.23 <ada@firm.example>: Recipient address rejected: Message rejected due to: SPF fail - not authorized"), "blocked"),
    Shape("mimecast policy", dsn(recipient("5.0.0", "smtp;554 Email rejected due to security policies - https://community.mimecast.com/docs/DOC-1369#554 [x.uk1]")), "blocked"),
    Shape("proofpoint blocked", dsn(recipient("5.7.0", "smtp; 554 5.7.0 Blocked - see https://ipcheck.proofpoint.com/?ip=192.0.2.7")), "blocked"),
    Shape("content, sendmail status 5.1.1", dsn(recipient("5.1.1", "smtp; 550 This message was classified as spam and may not be delivered")), "blocked"),
    Shape("relay denied", postfix("5.7.1", f"554 5.7.1 <{ADA}>: Relay access denied"), "blocked"),
    Shape("sender unknown", postfix("5.1.8", "550 5.1.8 <news@shop.example>: Sender address rejected: Domain not found"), "blocked"),
    Shape("sender callout", exim(f"SMTP error from remote mail server after RCPT TO:<{ADA}>:\n    host mx.firm.example [192.0.2.25]: 550 Verification failed for <news@shop.example>\n    550 No Such User Here\n    550 Sender verify failed"), "blocked"),
    Shape("virus", postfix("5.7.1", "554 5.7.1 Message rejected: virus found: Eicar"), "blocked"),
    Shape("reverse dns", postfix("5.7.25", "550 5.7.25 Client host rejected: cannot find your reverse hostname, [192.0.2.7]"), "blocked"),
    Shape("policy status alone", dsn(recipient("5.7.1")), "blocked"),
    Shape("exchange transport rule", exchange("5.7.1", "550 5.7.1 TRANSPORT.RULES.RejectMessage; the message was rejected by organization policy"), "blocked"),
    Shape("tls required", postfix("5.7.0", "530 5.7.0 Must issue a STARTTLS command first"), "blocked"),
    # --- soft: another time, or no cause that is known
    Shape("gmail full", dsn(recipient("4.2.2", f"smtp; 452-4.2.2 {GMAIL} is over quota. Please direct\n 452 4.2.2 the recipient to https://support.example/mail/?p=OverQuotaTemp")), "soft"),
    Shape("exchange full", exchange("5.2.2", "554 5.2.2 mailbox full; STOREDRV.Deliver.Exception:QuotaExceededException; Failed to process message"), "soft"),
    Shape("gmx full", dsn(recipient("5.2.2", "smtp; 552 Requested mail action aborted: exceeded storage allocation Quota exceeded. The recipient's mailbox is full.")), "soft"),
    Shape("orange full", dsn(recipient("5.2.2", "smtp; 552 5.2.2 La boite du destinataire est pleine")), "soft"),
    Shape("postfix time-out", postfix("4.4.1", "", human="connect to mx.firm.example[192.0.2.25]:25: Connection timed out"), "soft"),
    Shape("postfix dns trouble", postfix("4.4.3", "", human="Host or domain name not found. Name service error for name=firm.example type=MX: Host not found, try again"), "soft"),
    Shape("postfix greylisted", postfix("4.7.1", f"450 4.7.1 <{ADA}>: Recipient address rejected: Greylisted, see http://postgrey.example", action="delayed"), "soft"),
    Shape("postfix delayed, unknown user", postfix("4.1.1", f"450 4.1.1 <{ADA}>: Recipient address rejected: User unknown", action="delayed"), "soft"),
    Shape("exchange expired", exchange("4.4.7", "550 4.4.7 QUEUE.Expired; message expired"), "soft"),
    Shape("exchange online expired", exchange("5.4.300", "550 5.4.300 Message expired -> 451 4.4.0 DNS query failed"), "soft"),
    Shape("exchange loop", exchange("5.4.6", "554 5.4.6 Hop count exceeded - possible mail loop"), "soft"),
    Shape("exim retry time", exim("retry timeout exceeded"), "soft"),
    Shape("exim delay", exim("host mx.firm.example [192.0.2.25]: 451 4.3.0 Temporary lookup failure", delayed=True), "soft"),
    Shape("sendmail delay", sendmail(reason="451 4.3.0 try later", heading="transient non-fatal errors", transcript=""), "soft"),
    Shape("dragonfly", mail(f"This is the DragonFly Mail Agent at shop.example.\n\nThere was an error delivering your mail to <{ADA}>.\n\nDNS lookup failure: host firm.example not found\n\nMessage headers follow.\n\n{SENT}", subject="Mail delivery failed"), "soft"),
    Shape("qmail time-out", qmail("Sorry, I wasn't able to establish an SMTP connection. (#4.4.1)\nI'm not going to try again; this message has been in the queue too long."), "soft"),
    Shape("qmail look-up", qmail("CNAME lookup failed temporarily. (#4.4.3)\nI'm not going to try again; this message has been in the queue too long."), "soft"),
    Shape("too large", postfix("5.3.4", "552 5.3.4 Message size exceeds fixed limit"), "soft"),
    Shape("recipient rate", dsn(recipient("4.2.1", "smtp; 450 4.2.1 The user you are trying to contact is receiving mail at a rate that\n 450 4.2.1 prevents additional messages from being delivered.")), "soft"),
    Shape("refused without a cause", postfix("5.0.0", "550 Rejected"), "soft"),
    Shape("refused without a cause, sendmail status", dsn(recipient("5.1.1", "smtp; 554 Transaction failed")), "soft"),
    Shape("member of a list", dsn(recipient("5.1.1", "smtp; 550 5.1.1 User unknown", to="left@elsewhere.example", original="team@firm.example")), "soft", "team@firm.example"),
    Shape("gmail servfail", dsn(recipient("4.4.3", "smtp; DNS Error: DNS type 'mx' lookup of firm.example responded with code SERVFAIL"), sender="mailer-daemon@googlemail.com"), "soft"),
    # --- delivered and complaints
    Shape("delivered", dsn(recipient("2.1.5", "smtp; 250 2.1.5 Ok", action="delivered"), subject="Delivery report"), "delivered"),
    Shape("deliverable", dsn(recipient("2.1.5", "smtp; 250 2.1.5 Ok", action="deliverable")), "delivered"),
    Shape("relayed", dsn(recipient("2.0.0", action="relayed"), subject="Successful Mail Delivery Report"), "delivered"),
    Shape("expanded", dsn(recipient("2.0.0", action="expanded")), "delivered"),
    Shape("complaint", complaint(f"Original-Rcpt-To: <{ADA}>", f"Arrival-Date: {DATE}"), "complaint"),
    Shape("complaint, copy only", complaint("Source-IP: 192.0.2.7"), "complaint"),
    Shape("outlook.com complaint", mail(f"--BB\nContent-Type: message/rfc822\n\nX-HmXmrOriginalRecipient: {ADA}\n{SENT}\n--BB--\n", sender="staff@hotmail.example", subject="complaint about message from 192.0.2.7", Content_Type="multipart/mixed; boundary=BB"), "complaint"),
    # --- not a delivery report
    Shape("out of office", mail("I am out of the office until Monday. For user unknown questions write to bo@firm.example.\n", sender=f"Ada <{ADA}>", subject="Automatic reply: March", Auto_Submitted="auto-replied"), None),
    Shape("abwesenheit", mail("Ich bin bis Montag nicht im Büro.\n", sender=f"Ada <{ADA}>", subject="Abwesenheitsnotiz: March", Auto_Submitted="auto-replied"), None),
    Shape("vacation through a daemon", mail("Out of Office: back on 5 May.\n", sender="MAILER-DAEMON@firm.example", subject="Out of office: March"), None),
    Shape("read receipt", mail(f"--BB\nContent-Type: text/plain\n\nYour message was displayed.\n\n--BB\nContent-Type: message/disposition-notification\n\nFinal-Recipient: rfc822; {ADA}\nDisposition: manual-action/MDN-sent-manually; displayed\n\n--BB--\n", sender=ADA, subject="Read: March", Content_Type="multipart/report; report-type=disposition-notification; boundary=BB"), None),
    Shape("an answer", mail("Thank you, 550 5.1.1 looks nice.\n", sender=ADA, subject="Re: March"), None),
    Shape("not spam", complaint(f"Original-Rcpt-To: {ADA}").replace(b"Feedback-Type: abuse", b"Feedback-Type: not-spam"), None),
)  # fmt: skip
