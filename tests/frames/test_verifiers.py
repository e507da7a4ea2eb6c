"""The results of other verifiers: each layout as its source documents it, and what becomes of anything else."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.frames.verifiers import fitting_layouts, read_known
from mailverdict.model.words import Reason, Verdict
from mailverdict.sandbox import World
from mailverdict.table.columns import RESULT_NAMES
from mailverdict.table.verifiers import FLAGS, SKIP, verifier_layouts
from tests.doubles.scripted_backend import ScriptedBackend
from tests.doubles.tables import each_row

# For each service the header of its file as documented, and rows: cells, then the verdict and the reasons that are right.
# `{}` stands for an address. A verdict of "-" is a row about which the service says nothing.
FILES = {
    "ZeroBounce": (
        "Email Address,ZB Status,ZB Sub status,ZB Account,ZB Domain,ZB Free Email,ZB MX Found,ZB Did You Mean",
        [
            ("{},valid,,ada,firm.example,False,true,", "valid", ""),
            ("{},valid,alias_address,ada,firm.example,True,true,", "valid", ""),
            ("{},valid,role_based_accept_all,,,False,true,", "risky", "catch_all;role"),
            ("{},invalid,mailbox_not_found,,,False,true,", "invalid", "mailbox_not_found"),
            ("{},invalid,possible_typo,,,False,true,ada@gmail.com", "invalid", "possible_typo"),
            ("{},invalid,mailbox_quota_exceeded,,,False,true,", "unknown", "mailbox_full"),
            ("{},catch-all,,,,False,true,", "risky", "catch_all"),
            ("{},abuse,,,,False,true,", "risky", "abuse"),
            ("{},do_not_mail,role_based,,,False,true,", "risky", "role"),
            ("{},do_not_mail,toxic,,,False,true,", "risky", "toxic"),
            ("{},unknown,greylisted,,,False,true,", "unknown", "greylisted"),
            ("{},,,,,,,", "-", None),
        ],
    ),
    "NeverBounce": (
        "email,name,email_status,bad_syntax,free_email_host,role_account,has_dns_info",
        [
            ("{},Ada,valid,0,1,0,1", "valid", ""),
            ("{},Ada,valid,0,1,1,1", "risky", "role"),
            ("{},Ada,invalid,1,0,0,0", "invalid", "syntax_error"),
            ("{},Ada,invalid,0,0,0,0", "invalid", "no_mx_record"),
            ("{},Ada,invalid,0,0,0,1", "invalid", "invalid"),
            ("{},Ada,catchall,0,0,0,1", "risky", "catch_all"),
            ("{},Ada,disposable,0,0,0,1", "risky", "disposable"),
            ("{},Ada,unknown,0,0,0,1", "unknown", "inconclusive"),
        ],
    ),
    "Kickbox": (
        "Email,Result,Reason,Role,Free,Disposable,Accept-All,Sendex,Did You Mean",
        [
            ("{},deliverable,accepted_email,false,true,false,false,1,", "valid", ""),
            ("{},deliverable,accepted_email,true,true,false,false,1,", "risky", "role"),
            ("{},risky,low_deliverability,false,false,false,true,0.3,", "risky", "catch_all"),
            ("{},risky,low_quality,false,false,true,false,0.3,", "risky", "disposable"),
            ("{},risky,low_quality,false,false,false,false,0.3,", "risky", "low_quality"),
            (
                "{},undeliverable,rejected_email,false,false,false,false,0,",
                "invalid",
                "mailbox_not_found",
            ),
            (
                "{},undeliverable,invalid_domain,false,false,false,false,0,",
                "invalid",
                "no_mx_record",
            ),
            ("{},unknown,timeout,false,false,false,false,0,", "unknown", "timeout"),
            ("{},undeliverable,invalid_smtp,false,false,false,false,0,", "unknown", "inconclusive"),
        ],
    ),
    "Bouncer": (
        "email,status,reason,domain.acceptAll,domain.disposable,domain.free,account.role,account.fullMailbox,score,toxic,toxicity",
        [
            ("{},deliverable,accepted_email,no,no,yes,no,no,100,no,0", "valid", ""),
            ("{},deliverable,accepted_email,no,no,yes,yes,no,100,no,0", "risky", "role"),
            ("{},risky,low_deliverability,yes,no,no,no,no,50,no,0", "risky", "catch_all"),
            ("{},risky,low_deliverability,unknown,no,no,no,yes,50,no,0", "unknown", "mailbox_full"),
            ("{},risky,low_quality,no,yes,no,no,no,50,no,0", "risky", "disposable"),
            (
                "{},undeliverable,invalid_email,unknown,no,no,no,no,0,no,0",
                "invalid",
                "syntax_error",
            ),
            ("{},unknown,unsupported,unknown,no,no,no,no,0,no,0", "unknown", "protected"),
        ],
    ),
    "Hunter": (
        "First name,Email address,Confidence score,Company,Verification status,Verification date",
        [
            ("Ada,{},95,Firm,valid,2026-11-02", "valid", ""),
            ("Ada,{},95,Firm,Accept all,2026-11-02", "risky", "catch_all"),
            ("Ada,{},95,Firm,invalid,2026-11-02", "invalid", "invalid"),
            ("Ada,{},95,Firm,webmail,2026-11-02", "unknown", "inconclusive"),
            ("Ada,{},95,Firm,Blocked,2026-11-02", "unknown", "protected"),
            ("Ada,{},95,Firm,,", "-", None),
        ],
    ),
    "Emailable": (
        "email,emailable state,emailable reason,emailable disposable,emailable role,emailable accept_all,emailable mailbox_full",
        [
            ("{},deliverable,accepted_email,false,false,false,false", "valid", ""),
            (
                "{},undeliverable,Rejected Email,false,false,false,false",
                "invalid",
                "mailbox_not_found",
            ),
            ("{},undeliverable,invalid_smtp,false,false,false,false", "unknown", "inconclusive"),
            ("{},risky,low_deliverability,false,false,true,false", "risky", "catch_all"),
            ("{},risky,low_deliverability,false,false,false,true", "unknown", "mailbox_full"),
            ("{},risky,low_quality,true,false,false,false", "risky", "disposable"),
            ("{},unknown,no_connect,false,false,false,false", "unknown", "port_closed"),
            ("{},duplicate,,,,,", "-", None),
        ],
    ),
    "MillionVerifier": (
        '"email","quality","result","free","role"',
        [
            ('"{}","good","ok","no","no"', "valid", ""),
            ('"{}","good","ok","no","yes"', "risky", "role"),
            ('"{}","risky","catch_all","no","no"', "risky", "catch_all"),
            ('"{}","risky","unknown","no","no"', "unknown", "inconclusive"),
            ('"{}","bad","disposable","no","no"', "risky", "disposable"),
            ('"{}","bad","invalid","no","no"', "invalid", "invalid"),
            ('"{}","","error","",""', "-", None),
        ],
    ),
    "DeBounce": (
        "email,code,role,free_email,result,reason,send_transactional,did_you_mean",
        [
            ("{},5,false,true,Safe to Send,Deliverable,1,", "valid", ""),
            ('{},5,true,true,Safe to Send,"Deliverable, Role",1,', "risky", "role"),
            ("{},4,false,false,Risky,Accept-All,0,", "risky", "catch_all"),
            ("{},1,false,false,Invalid,Syntax,0,", "invalid", "syntax_error"),
            ("{},2,false,false,Risky,Spam Trap,0,", "risky", "spamtrap"),
            ("{},3,false,false,Invalid,Disposable,0,", "risky", "disposable"),
            ("{},6,false,false,Invalid,Invalid,0,", "invalid", "invalid"),
            ("{},7,false,false,Unknown,Unknown,0,", "unknown", "inconclusive"),
        ],
    ),
    "Mailgun": (
        "address,result,risk,reason,is_disposable_address,is_role_address,did_you_mean",
        [
            ("{},deliverable,low,,false,false,", "valid", ""),
            ("{},deliverable,low,,false,true,", "risky", "role"),
            ("{},deliverable,medium,catch_all,false,false,", "risky", "catch_all"),
            (
                '{},deliverable,medium,"immature_domain, catch_all",false,false,',
                "risky",
                "catch_all",
            ),
            (
                "{},undeliverable,high,mailbox_does_not_exist,false,false,",
                "invalid",
                "mailbox_not_found",
            ),
            ("{},undeliverable,high,No MX host found,false,false,", "invalid", "no_mx_record"),
            (
                "{},do_not_send,high,mailbox_is_disposable_address,true,false,",
                "risky",
                "disposable",
            ),
            ("{},unknown,unknown,unknown_provider,false,false,", "unknown", "inconclusive"),
        ],
    ),
    "Clearout": (
        "Email,Clearout Safe to Send,Clearout Verification Status,Clearout Reason,Clearout Suggested Email,"
        "Clearout Disposable Status,Clearout Free Account Status,Clearout Role Account Status",
        [
            ("{},Yes,Valid,Success,,No,Yes,No", "valid", ""),
            ("{},Risky,Valid,Success,,No,No,Yes", "risky", "role"),
            ("{},No,Invalid,Mailbox was not found,,No,No,No", "invalid", "mailbox_not_found"),
            ("{},No,Invalid,Mailbox quota exceeded.,,No,No,No", "unknown", "mailbox_full"),
            ("{},No,Invalid,Probably Spamtrap/Honeypot,,No,No,No", "risky", "spamtrap"),
            ("{},Risky,Catch All,Catch All mail server,,No,No,No", "risky", "catch_all"),
            ("{},Unknown,Unknown,greylisting,,No,No,No", "unknown", "greylisted"),
            ("{},Unknown,Unknown,Request cancelled,,No,No,No", "-", None),
        ],
    ),
    "Verifalia": (
        "InputData,CreatedOn,CompletedOn,Classification,Status,IsDisposableEmailAddress,IsFreeEmailAddress,IsRoleAccount",
        [
            ("{},2026-11-02,2026-11-02,Deliverable,Success,False,False,False", "valid", ""),
            (
                "{},2026-11-02,2026-11-02,Undeliverable,MailboxDoesNotExist,False,False,False",
                "invalid",
                "mailbox_not_found",
            ),
            (
                "{},2026-11-02,2026-11-02,Undeliverable,DomainHasNullMx,False,False,False",
                "invalid",
                "no_mx_record",
            ),
            (
                "{},2026-11-02,2026-11-02,Risky,ServerIsCatchAll,False,False,False",
                "risky",
                "catch_all",
            ),
            (
                "{},2026-11-02,2026-11-02,Unknown,LocalSenderAddressRejected,False,False,False",
                "unknown",
                "sender_blocked",
            ),
            (
                "{},2026-11-02,2026-11-02,Risky,OverrideMatch,False,False,False",
                "risky",
                "overridematch",
            ),
            ("{},2026-11-02,2026-11-02,Unknown,Duplicate,False,False,False", "-", None),
        ],
    ),
    "QuickEmailVerification": (
        "email,result,reason,disposable,accept_all,role,free,safe_to_send,did_you_mean",
        [
            ("{},valid,accepted_email,false,false,false,false,true,", "valid", ""),
            ("{},valid,accepted_email,false,true,false,false,false,", "risky", "catch_all"),
            (
                "{},invalid,Rejected_email,false,false,false,false,false,",
                "invalid",
                "mailbox_not_found",
            ),
            (
                "{},invalid,exceeded_storage,false,false,false,false,false,",
                "unknown",
                "mailbox_full",
            ),
            (
                "{},unknown,temporarily_blocked,false,false,false,false,false,",
                "unknown",
                "greylisted",
            ),
        ],
    ),
    "MyEmailVerifier": (
        "Address,Status,catch_all,Disposable_Domain,Role_Based,Free_Domain,Greylisted,Diagnosis",
        [
            ("{},Valid,false,false,false,false,false,Mailbox Exists and Active", "valid", ""),
            ("{},Invalid,false,false,false,false,false,Mailbox Not Exists", "invalid", "invalid"),
            ("{},Invalid,false,true,false,false,false,Disposable", "risky", "disposable"),
            ("{},Catch-all,true,false,false,false,false,Catch-all", "risky", "catch_all"),
            ("{},Unknown,false,false,false,false,true,Greylisted", "unknown", "greylisted"),
        ],
    ),
    "Snov.io": (
        "email,smtp_status,unknown_status_reason,is_valid_format,is_disposable,is_webmail,is_gibberish",
        [
            ("{},valid,,true,false,false,false", "valid", ""),
            ("{},not_valid,,true,false,false,false", "invalid", "not_valid"),
            ("{},not_valid,,false,false,false,false", "invalid", "syntax_error"),
            ("{},unknown,catchall,true,false,false,false", "risky", "catch_all"),
            ("{},unknown,banned,true,false,false,false", "unknown", "protected"),
        ],
    ),
    "XVerify": (
        "status,email,Status,Invalid Reason,Handle,Domain,Syntax,Catch All",  # the first one is the user's own
        [
            ("customer,{},Valid,verified,ada,firm.example,true,false", "valid", ""),
            ("customer,{},Valid,verified,ada,firm.example,true,true", "risky", "catch_all"),
            (
                "customer,{},Invalid,User does not exist,ada,firm.example,true,false",
                "invalid",
                "mailbox_not_found",
            ),
            ("customer,{},Invalid,Disposable,ada,firm.example,true,unknown", "risky", "disposable"),
            ("customer,{},Risky,Complainer,ada,firm.example,true,unknown", "risky", "complainer"),
            ("customer,{},Accept_All,,ada,firm.example,true,true", "risky", "catch_all"),
        ],
    ),
    "Experian": (
        "email,Certainty,VerboseOutput",
        [
            ("{},verified,verified", "valid", ""),
            ("{},undeliverable,mailboxDoesNotExist", "invalid", "mailbox_not_found"),
            ("{},undeliverable,mailboxFull", "unknown", "mailbox_full"),
            ("{},unknown,acceptAll", "risky", "catch_all"),
            ("{},illegitimate,profanity", "risky", "profanity"),
        ],
    ),
    "Loqate": (
        "email,Status,StatusMessage,Account,Domain",
        [
            ("{},valid,,ada,firm.example", "valid", ""),
            ("{},invalid,,ada,firm.example", "invalid", "invalid"),
            ("{},accept_all,,ada,firm.example", "risky", "catch_all"),
            ("{},unknown,,ada,firm.example", "unknown", "inconclusive"),
        ],
    ),
    "Proofy": (
        "email,status,syntax.valid,free,roleAccount,roleNoReply,disposable,possibleSpamTrap,mx.acceptsMail,"
        "deliverability.canConnect,deliverability.fullInbox,deliverability.catchAll,deliverability.deliverable",
        [
            ("{},valid,true,false,false,false,false,false,true,true,false,false,true", "valid", ""),
            (
                "{},invalid,true,false,false,false,false,false,false,false,false,false,false",
                "invalid",
                "no_mx_record",
            ),
            (
                "{},invalid,true,false,false,false,false,false,true,false,false,false,false",
                "unknown",
                "port_closed",
            ),
            (
                "{},invalid,true,false,false,false,false,false,true,true,false,false,false",
                "invalid",
                "invalid",
            ),
            (
                "{},risky,true,false,false,false,false,true,true,true,false,false,true",
                "risky",
                "spamtrap",
            ),
            (
                "{},risky,true,false,false,false,false,false,true,true,true,false,false",
                "unknown",
                "mailbox_full",
            ),
        ],
    ),
    "Bouncify": (
        "Email,Verification Result,Syntax Error,ISP,Role,Disposable,Trap,Verified At",
        [
            ("{},deliverable,N,N,N,N,N,2026-11-02", "valid", ""),
            ("{},undeliverable,Y,N,N,N,N,2026-11-02", "invalid", "syntax_error"),
            ("{},undeliverable,N,N,N,N,N,2026-11-02", "invalid", "undeliverable"),
            ("{},accept-all,N,N,Y,N,N,2026-11-02", "risky", "catch_all;role"),
            ("{},unknown,N,N,N,N,Y,2026-11-02", "risky", "spamtrap;inconclusive"),
        ],
    ),
    "CaptainVerify": (
        "email;status;free;disposable;role;ok_for_all;protected;did_you_mean;details",
        [
            ("{};ok;0;0;0;0;0;;", "valid", ""),
            ("{};risky;0;1;0;0;0;;low quality", "risky", "disposable"),
            ("{};invalid;0;0;0;0;0;;email error", "invalid", "email_error"),
            ("{};invalid;0;0;0;0;0;;smtp error", "unknown", "inconclusive"),
            ("{};invalid;0;0;0;0;0;;", "unknown", "inconclusive"),
            ("{};unknown;0;0;0;0;1;;", "unknown", "protected"),
            ("{};ok;0;0;0;1;0;;", "risky", "catch_all"),
        ],
    ),
    "Email Hippo": (
        "email,Checked Email Address,Status,Additional Status Info,Domain Country Code,Mail Server Country Code",
        [
            ("{},ada@firm.example,OK,Success,DE,DE", "valid", ""),
            ("{},ada@firm.example,Bad,MailboxDoesNotExist,DE,DE", "invalid", "mailbox_not_found"),
            ("{},ada@firm.example,Un-verifiable,ServerIsCatchAll,DE,DE", "risky", "catch_all"),
            ("{},ada@firm.example,Un-verifiable,IpBlockDetected,DE,DE", "unknown", "protected"),
        ],
    ),
    "MyCleanList": (
        "Email,Status,Disposable,Spam Traps,Role-Based,Unsafe",
        [
            ("{},ok,No,No,No,No", "valid", ""),
            ("{},fail,No,No,No,Yes", "unknown", "inconclusive"),
            ("{},ok,No,Yes,No,Yes", "risky", "spamtrap"),
            ("{},unknown,No,No,No,No", "unknown", "inconclusive"),
        ],
    ),
    "Reacher": (
        "input,is_reachable,misc.is_disposable,misc.is_role_account,misc.gravatar_url,mx.accepts_mail,smtp.can_connect,"
        "smtp.has_full_inbox,smtp.is_catch_all,smtp.is_deliverable,smtp.is_disabled,syntax.is_valid_syntax,syntax.domain",
        [
            (
                "{},safe,false,false,,false,true,false,false,true,false,true,firm.example",
                "valid",
                "",
            ),
            (
                "{},risky,false,false,,false,true,false,true,true,false,true,firm.example",
                "risky",
                "catch_all",
            ),
            (
                "{},risky,false,true,,false,true,false,false,true,false,true,firm.example",
                "risky",
                "role",
            ),
            (
                "{},risky,false,true,,false,true,false,false,false,false,true,firm.example",
                "invalid",
                "mailbox_not_found;role",
            ),
            (
                "{},risky,true,false,,false,false,false,false,false,false,true,firm.example",
                "risky",
                "disposable",
            ),
            (
                "{},risky,false,false,,false,true,true,false,false,false,true,firm.example",
                "unknown",
                "mailbox_full",
            ),
            (
                "{},invalid,false,false,,false,true,false,false,false,false,true,firm.example",
                "invalid",
                "mailbox_not_found",
            ),
            (
                "{},invalid,false,false,,false,false,false,false,false,false,true,firm.example",
                "invalid",
                "no_mx_record",
            ),
            (
                "{},invalid,false,false,,false,false,false,false,false,false,false,",
                "invalid",
                "syntax_error",
            ),
            (
                "{},unknown,false,false,,false,false,false,false,false,false,true,firm.example",
                "unknown",
                "inconclusive",
            ),
        ],
    ),
    "AfterShip": (
        "email,reachable,syntax.valid,smtp.host_exists,smtp.full_inbox,smtp.catch_all,disposable,role_account,free,"
        "has_mx_records,smtp.disabled",
        [
            ("{},yes,true,true,false,false,false,false,false,true,", "valid", ""),
            ("{},yes,true,true,false,false,false,true,false,true,", "risky", "role"),
            # Any refusal, also of the computer that asked, unless the reply says that the mailbox is disabled.
            ("{},no,true,true,false,false,false,false,false,true,", "unknown", "inconclusive"),
            (
                "{},no,true,true,false,false,false,false,false,true,true",
                "invalid",
                "mailbox_not_found",
            ),
            ("{},no,true,false,false,false,false,false,false,false,", "invalid", "no_mx_record"),
            ("{},no,true,true,true,false,false,false,false,true,", "unknown", "mailbox_full"),
            ("{},unknown,false,,,,false,false,false,false,", "invalid", "syntax_error"),
            ("{},unknown,true,,,,true,false,false,false,", "risky", "disposable;inconclusive"),
            ("{},unknown,true,true,false,true,false,false,false,true,", "risky", "catch_all"),
            ("{},unknown,true,,,,false,false,false,true,", "unknown", "inconclusive"),
        ],
    ),
    "mailsherpa": (
        "Email,IsDeliverable,IsSyntaxValid,Provider,IsRisky,IsFirewalled,IsFreeAccount,IsRoleAccount,IsMailboxFull,IsCatchAll,SMTPError",
        [
            ("{},true,true,google,false,false,false,false,false,false,false", "valid", ""),
            ("{},true,true,google,true,true,true,false,false,false,false", "valid", ""),
            ("{},true,true,google,false,false,false,false,false,true,false", "risky", "catch_all"),
            (
                "{},false,true,google,false,false,false,false,false,false,false",
                "unknown",
                "inconclusive",
            ),
            (
                "{},false,false,google,false,false,false,false,false,false,false",
                "invalid",
                "syntax_error",
            ),
            (
                "{},false,true,google,false,false,false,false,true,false,false",
                "unknown",
                "mailbox_full",
            ),
        ],
    ),
    "Reoon": (
        "email,status,overall_score,is_safe_to_send,is_valid_syntax,mx_accepts_mail,is_role_account,is_catch_all",
        [
            ("{},safe,98,true,true,true,false,false", "valid", ""),
            ("{},invalid,3,false,true,true,false,false", "invalid", "invalid"),
            ("{},invalid,3,false,false,false,false,false", "invalid", "syntax_error"),
            ("{},disabled,4,false,true,true,false,false", "invalid", "mailbox_not_found"),
            ("{},inbox_full,20,false,true,true,false,false", "unknown", "mailbox_full"),
            ("{},catch_all,71,false,true,true,false,true", "risky", "catch_all"),
            ("{},role_account,93,true,true,true,true,false", "risky", "role"),
            ("{},unknown,0,false,true,true,false,false", "unknown", "inconclusive"),
        ],
    ),
    "EmailListVerify": (
        "Email,result,EmailDomain",
        [
            ("{},ok,firm.example", "valid", ""),
            ("{},ok_for_all,firm.example", "risky", "catch_all"),
            ("{},email_disabled,firm.example", "invalid", "mailbox_not_found"),
            ("{},invalid_mx,firm.example", "invalid", "no_mx_record"),
            ("{},dead_server,firm.example", "unknown", "port_closed"),
            ("{},attempt_rejected,firm.example", "unknown", "sender_blocked"),
            ("{},error_credit,firm.example", "-", None),
        ],
    ),
    "Abstract": (
        "email,deliverability,quality_score,is_valid_format,is_smtp_valid,is_mx_found,is_role_email,is_catchall_email",
        [
            ("{},DELIVERABLE,0.9,TRUE,TRUE,TRUE,FALSE,FALSE", "valid", ""),
            ("{},DELIVERABLE,0.9,TRUE,TRUE,TRUE,FALSE,TRUE", "risky", "catch_all"),
            ("{},UNDELIVERABLE,0.0,TRUE,FALSE,TRUE,FALSE,FALSE", "invalid", "undeliverable"),
            ("{},UNDELIVERABLE,0.0,TRUE,FALSE,FALSE,FALSE,FALSE", "invalid", "no_mx_record"),
            ("{},UNKNOWN,0.5,TRUE,UNKNOWN,TRUE,FALSE,FALSE", "unknown", "inconclusive"),
        ],
    ),
    "SendGrid": (
        "EMAIL,VERDICT,SCORE,HAS_VALID_ADDRESS_SYNTAX,HAS_MX_OR_A_RECORD,IS_SUSPECTED_ROLE_ADDRESS,HAS_KNOWN_BOUNCES",
        [
            ("{},Valid,0.9,true,true,false,false", "valid", ""),
            ("{},Risky,0.2,true,true,false,false", "risky", "risky"),
            ("{},Risky,0.2,true,true,true,false", "risky", "role"),
            ("{},Invalid,0.0,true,false,false,false", "invalid", "no_mx_record"),
            ("{},Invalid,0.0,true,true,false,true", "invalid", "invalid"),
        ],
    ),
    "mailfloss": (
        "email,status,passed,reason,suggestion",
        [
            ("{},passed,true,available,", "valid", ""),
            ("{},undeliverable,false,nonexistent,", "invalid", "mailbox_not_found"),
            ("{},undeliverable,false,illegit,", "invalid", "illegit"),
            ("{},undeliverable,false,inbox_full,", "unknown", "mailbox_full"),
            ("{},risky,false,banned,", "risky", "banned"),
            ("{},unknown,false,accept_all,", "risky", "catch_all"),
        ],
    ),
    "mailboxlayer": (
        "email,did_you_mean,format_valid,mx_found,smtp_check,catch_all,role,disposable,free,score",
        [
            ("{},,true,true,true,false,false,false,false,0.8", "valid", ""),
            ("{},,true,true,true,true,false,false,false,0.8", "risky", "catch_all"),
            ("{},,true,true,false,,false,false,false,0.3", "unknown", "inconclusive"),
            ("{},,true,false,false,,false,false,false,0.1", "invalid", "no_mx_record"),
            ("{},,false,,,,false,false,false,0", "invalid", "syntax_error"),
        ],
    ),
    "MailboxValidator": (
        "email_address,is_free,is_syntax,is_domain,is_smtp,is_verified,is_server_down,is_greylisted,is_catchall,status",
        [
            ("{},False,True,True,True,True,False,False,False,True", "valid", ""),
            ("{},False,True,True,True,False,False,False,Unknown,False", "unknown", "inconclusive"),
            ("{},False,True,True,True,False,False,True,Unknown,False", "unknown", "greylisted"),
            ("{},False,True,True,True,True,False,False,False,False", "risky", "false"),
            ("{},False,True,False,-,-,-,-,-,False", "invalid", "no_mx_record"),
            ("{},False,False,-,-,-,-,-,-,False", "invalid", "syntax_error"),
        ],
    ),
    "Truemail": (
        "date,email,validation_type,success,errors.regex,errors.smtp,smtp_debug",
        [
            ("2026-03-03 09:15:00 +0000,{},smtp,true,,,", "valid", ""),
            ("2026-03-03 09:15:00 +0000,{},smtp,true,,,1 item", "unknown", "inconclusive"),
            ("2026-03-03 09:15:00 +0000,{},mx,true,,,", "unknown", "inconclusive"),
            (
                "2026-03-03 09:15:00 +0000,{},smtp,false,,smtp error,1 item",
                "unknown",
                "inconclusive",
            ),
            ("2026-03-03 09:15:00 +0000,{},smtp,false,no match,,", "invalid", "syntax_error"),
        ],
    ),
    "Elastic Email": (
        "email,suggested_spelling,disposable,role,reason,result,predicted_score",
        [
            ("{},,false,false,,Valid,0.9", "valid", ""),
            ("{},,false,true,,Valid,0.9", "risky", "role"),
            ("{},,false,false,all that was found,Invalid,0.1", "invalid", "invalid"),
            ("{},,false,false,,None,0", "-", None),
        ],
    ),
    "Emailit": (
        "email,result,risk,checks.valid_syntax,checks.smtp_connect,checks.has_mx_records,checks.catch_all",
        [
            ("{},safe,low,true,true,true,false", "valid", ""),
            ("{},disabled,high,true,true,true,false", "invalid", "mailbox_not_found"),
            ("{},invalid,high,true,false,false,false", "invalid", "no_mx_record"),
            ("{},inbox_full,high,true,true,true,false", "unknown", "mailbox_full"),
        ],
    ),
    "Email Verifier API": (
        "status,event,email,emailSuggested,possibleSpamtrap,isDisposable,isRoleAccount",
        [
            ("passed,mailboxExists,{},,false,false,false", "valid", ""),
            ("failed,mailboxDoesNotExist,{},,false,false,false", "invalid", "mailbox_not_found"),
            ("failed,mailboxIsFull,{},,false,false,false", "unknown", "mailbox_full"),
            ("unknown,isCatchall,{},,false,false,false", "risky", "catch_all"),
            ("transient,transientError,{},,false,false,false", "unknown", "inconclusive"),
        ],
    ),
}
ADDRESSES = [f"ada{n}@firm.example" for n in range(20)]


def text_of(header, rows):
    return "\r\n".join(
        [header, *(cells.format(ADDRESSES[n]) for n, (cells, _, _) in enumerate(rows)), ""]
    )


def write(folder, service):
    path = folder / "export.csv"
    path.write_text("\ufeff" + text_of(*FILES[service]), "utf-8", newline="")
    return path


@pytest.mark.parametrize("service", FILES)
def test_an_export_is_known_by_its_columns_and_its_words_are_ours(tmp_path, service):
    found = mv.read_verdicts(write(tmp_path, service))
    rows = FILES[service][1]
    assert found["email"].tolist() == ADDRESSES[: len(rows)]
    said = list(
        zip(found["email_verdict"].astype(object).fillna("-"), found["email_reasons"], strict=True)
    )
    expected = [(verdict, pd.NA if reasons is None else reasons) for _, verdict, reasons in rows]
    assert [str(each) for each in said] == [str(each) for each in expected]
    checked = found[found["email_status"] == "done"]
    assert set(checked["email_source"]) == {service}
    assert set(found["email_status"]) <= {"done", "pending"}
    assert checked.loc[checked["email_verdict"] != "valid", "email_error_message"].notna().all()


def test_every_layout_has_a_file_and_says_where_it_was_seen():
    assert [layout.service for layout in verifier_layouts()] == [*FILES, "another verifier"]
    for layout in verifier_layouts():
        assert "read 2026-" in layout.source
        assert set(layout.columns) >= {"status"} or layout.is_general
        for fields, meaning in layout.rows:
            assert set(fields) <= {*layout.columns, "status"}, (layout.service, fields)
            assert meaning in (SKIP, *Verdict) or set(meaning.split()) <= set(Reason), (
                layout.service,
                meaning,
            )


@each_row("service", FILES)
def test_no_layout_hides_another(service):
    names = FILES[service][0].replace('"', "").replace(";", ",").split(",")
    assert [layout.service for layout in fitting_layouts(tuple(names))] == [service]
    for layout in verifier_layouts():
        for needed in layout.needs:
            assert fitting_layouts(tuple(sorted(needed))) == [layout]


def test_no_layout_is_known_by_what_many_files_have():
    shared = {"emailstatus", "status", "result", "reason", "verdict", "state", "free", "role"}
    shared |= {"email", "address", "score", "deliverability", "isreachable", "disposable"}
    for layout in verifier_layouts():
        for needed in layout.needs:
            assert not needed <= shared, (layout.service, needed)


def test_what_an_export_does_not_say_is_missing_and_flags_are_those_that_it_says():
    export = pd.DataFrame(
        {"mail": ["a@x.example", "b@x.example"], "result": ["ok", "disposable"], "quality": "good"}
    )
    found = mv.read_verdicts(export.assign(free=["yes", ""], role=["no", "no"]))
    assert found["email_free"].tolist() == [True, pd.NA]
    assert found["email_role"].tolist() == [False, False]
    assert found["email_disposable"].tolist() == [pd.NA, True]
    for name in ("spamtrap", "catch_all", "protected"):
        assert found[f"email_{name}"].isna().all()


def zerobounce(**columns):
    return pd.DataFrame(
        {"E-Mail": ["ada@firm.example", "bo@firm.example"], "ZB Status": ["valid", "invalid"]}
        | columns
    )


def test_a_row_of_the_export_is_a_row_with_its_index_and_an_address_is_repaired():
    export = (
        zerobounce().set_axis(["x", "y"]).assign(**{"E-Mail": ["Ada <Ada@Firm.example>", None]})
    )
    found = mv.read_verdicts(export)
    assert found.index.tolist() == ["x", "y"]
    assert found["email"].tolist() == ["Ada@firm.example", pd.NA]
    assert found["email_status"].tolist() == ["done", "missing"]
    assert found["email_verdict"].isna().tolist() == [False, True]


@each_row("make", [pa.Table.from_pandas, pl.from_pandas])
def test_the_kind_of_the_frame_comes_back(make):
    given = make(zerobounce())
    found = mv.read_verdicts(given)
    assert type(found) is type(given)
    whole = found.to_pandas()
    assert whole["email_verdict"].astype(str).tolist() == ["valid", "invalid"]


def test_a_word_that_is_not_known_stays_unknown_and_is_named():
    export = zerobounce(**{"ZB Sub Status": ["moon_phase", "new;2"]})
    with pytest.warns(
        UserWarning,
        match=r"2 rows have words of ZeroBounce .* unknown: 'moon_phase' \(1\), 'new;2' \(1\); say .*outcomes=",
    ):
        found = mv.read_verdicts(pd.concat([export, zerobounce()], ignore_index=True))
    assert found["email_verdict"].tolist() == ["unknown", "unknown", "valid", "invalid"]
    assert found["email_why"].tolist()[:2] == ["moon_phase", "new_2"]
    assert found["email_error_message"][0] == "the service gives the reason 'moon_phase'"


def test_signs_alone_say_nothing():
    export = zerobounce(**{"ZB Status": ["-", "invalid,"], "ZB Sub Status": ["?", "--"]})
    found = mv.read_verdicts(export)
    assert found["email_status"].tolist() == ["pending", "done"]
    assert found["email_why"].tolist() == [pd.NA, "invalid"]


def test_the_warning_names_few_words():
    cells = [f"word{n}" for n in range(100)]
    export = pd.DataFrame({"email": "a@x.example", "ZB Status": ["valid", *cells]})
    with pytest.warns(UserWarning, match=r"'word4' \(1\) and 95 more; say"):
        mv.read_verdicts(export)


def test_columns_of_a_service_with_none_of_its_words_are_an_error():
    export = zerobounce(**{"ZB Status": ["subscribed", "cleaned"]})
    with pytest.raises(
        mv.InputError,
        match="columns of ZeroBounce, but none of its words: it has 'subscribed', 'cleaned'; say",
    ):
        mv.read_verdicts(export)


def test_a_file_of_nobody_names_its_columns_and_how_to_name_them(tmp_path):
    path = tmp_path / "export.csv"
    path.write_text("email,opinion\nada@firm.example,good\n")
    with pytest.raises(
        mv.ColumnError,
        match=r"columns=\{'email': 'email', 'status': 'opinion'\} or --map email=email,status=opinion; "
        "it has 2 columns: 'email', 'opinion'",
    ):
        mv.read_verdicts(path)


def test_columns_of_two_services_are_an_error():
    export = pd.DataFrame(
        {"email": ["a@x.example"], "result": "valid", "reason": "x", "sendex": 1, "safe_to_send": 1}
    )
    with pytest.raises(
        mv.ColumnError, match="may be of Kickbox and QuickEmailVerification: leave out"
    ):
        mv.read_verdicts(export)


def test_of_several_columns_with_addresses_one_is_read_and_the_others_are_named():
    export = zerobounce(private=["a@home.example", "b@home.example"])
    with pytest.warns(
        UserWarning,
        match=r"column E-Mail: 2 of 2 rows .*; addresses are also in private \(2 filled",
    ):
        mv.read_verdicts(export)
    assert mv.read_verdicts(export, column="private")["email"].tolist() == [
        "a@home.example",
        "b@home.example",
    ]
    with pytest.raises(mv.ColumnError, match="no column 'privat'"):
        mv.read_verdicts(export, column="privat")


def another(**columns):
    return pd.DataFrame({"mail": ["ada@firm.example", "bo@firm.example"]} | columns)


class TestAnotherVerifier:
    """Files of no known service: what the caller says about them, and what can mean nothing else."""

    def test_the_caller_names_the_columns_and_what_the_words_mean(self):
        export = another(
            Grade=["A", "F"],
            Why=["", "quota"],
            Boss=["no", "yes"],
            Day=["2026-03-01", "3/5/2026"],
            Fix=["", "firm.test"],
        )
        columns = {"email": "mail", "status": "Grade", "reason": "Why", "role": "Boss", "at": "Day"}
        outcomes = {"A": "valid", "F": "invalid", "quota": "mailbox_full"}
        found = mv.read_verdicts(export, columns=columns | {"suggestion": "Fix"}, outcomes=outcomes)
        assert found["email_verdict"].tolist() == ["valid", "unknown"]
        assert found["email_reasons"].tolist() == ["", "mailbox_full;role"]
        assert found["email_suggestion"].tolist() == [pd.NA, "bo@firm.test"]
        assert found["email_checked_at"].tolist() == [pd.Timestamp("2026-03-01", tz="UTC"), pd.NaT]
        assert set(found["email_source"]) == {"another verifier"}

    @each_row(
        ("status", "reason", "verdict", "reasons"),
        [
            ("OK", "", "valid", ""),
            ("deliverable", "role", "risky", "role"),
            ("Accept-All", "", "risky", "catch_all"),
            ("invalid", "mailbox does not exist", "invalid", "mailbox_not_found"),
            ("invalid", "no such planet", "invalid", "no_such_planet"),
            ("invalid", "Mailbox full", "unknown", "mailbox_full"),
            ("undeliverable", "timeout", "unknown", "timeout"),
            # A reason makes no address invalid that the verifier does not call so.
            ("unknown", "mailbox_not_found", "unknown", "inconclusive"),
            ("risky", "mailbox_not_found", "risky", "mailbox_not_found"),
            ("duplicate", "", "pending", None),
        ],
    )
    def test_common_words_are_known(self, status, reason, verdict, reasons):
        export = pd.DataFrame({"a": ["ada@firm.example"], "b": [status], "c": [reason]})
        found = mv.read_verdicts(export, columns={"email": "a", "status": "b", "reason": "c"})
        assert found["email_verdict"].astype(object).fillna("pending").tolist() == [verdict]
        assert found["email_reasons"].astype(object).fillna("none").tolist() == [
            reasons or ("none" if reasons is None else "")
        ]

    def test_an_unknown_word_is_unknown_and_the_warning_counts_it(self):
        with pytest.warns(UserWarning, match=r"unknown: 'moon' \(1\); say .* outcomes=\{'moon': "):
            found = mv.read_verdicts(
                another(Grade=["ok", "moon"]), columns={"email": "mail", "status": "Grade"}
            )
        assert found["email_verdict"].tolist() == ["valid", "unknown"]

    def test_a_given_meaning_counts_for_a_known_service_too(self):
        export = zerobounce(**{"ZB Sub Status": ["moon_phase", "mailbox_not_found"]})
        found = mv.read_verdicts(
            export, outcomes={"Moon Phase": "skip", "mailbox_not_found": "unknown"}
        )
        assert found["email_status"].tolist() == ["pending", "done"]
        assert found["email_why"].tolist() == [pd.NA, "mailbox_not_found"]
        assert found["email_verdict"].tolist()[1] == "unknown"

    def test_a_huge_cell_is_an_unknown_word(self):
        with pytest.warns(UserWarning, match=r"unknown: 'ok,ok,.*\(1\); say"):
            found = mv.read_verdicts(
                another(Grade=["ok", "ok," * 100_000]), columns={"email": "mail", "status": "Grade"}
            )
        assert found["email_verdict"].tolist() == ["valid", "unknown"]

    def test_whole_numbers_beside_gaps_are_words(self):
        export = another(code=[1.0, None])
        found = mv.read_verdicts(
            export, columns={"email": "mail", "status": "code"}, outcomes={"1": "valid"}
        )
        assert found["email_status"].tolist() == ["done", "pending"]

    @each_row(
        ("columns", "outcomes", "problem"),
        [
            ({"email": "mail"}, None, "give the column of 'status'"),
            ({"email": "mail", "state": "Grade"}, None, "'state' is not one of email, status"),
            ({"email": "mail", "status": "Grade"}, {"ok": "good"}, "'ok'.*'good': one of valid, "),
        ],
    )
    def test_a_wrong_field_or_meaning_is_named(self, columns, outcomes, problem):
        with pytest.raises(mv.SettingsError, match=problem):
            mv.read_verdicts(another(Grade=["ok", "ok"]), columns=columns, outcomes=outcomes)

    def test_a_column_that_is_not_there_is_named(self):
        columns = {"email": "mail", "status": "Grades"}
        with pytest.raises(mv.ColumnError, match=r"no column 'Grades' \(did you mean 'Grade'"):
            mv.read_verdicts(another(Grade=["ok", "ok"]), columns=columns)
        with pytest.raises(mv.SettingsError, match="with columns="):
            mv.read_verdicts(another(Grade=["ok", "ok"]), column="mail", columns=columns)

    @each_row(
        "columns",
        [
            {"email_status": ["valid", "invalid"]},
            {"Verification Result": ["deliverable", "catch-all"]},
            {"status": ["valid", "invalid"], "is_disposable": [False, False]},
            {"result": ["deliverable", "undeliverable"]},
        ],
    )
    def test_names_and_words_that_mean_it_are_read_and_said(self, columns):
        with pytest.warns(UserWarning, match="is read as the export of another verifier"):
            found = mv.read_verdicts(another(**columns))
        assert found["email_verdict"].tolist()[0] == "valid"
        assert set(found["email_source"]) == {"another verifier"}

    @each_row(
        "columns",
        [
            {"status": ["valid", "invalid"]},  # a voucher, a licence
            {"result": ["ok", "ok"]},
            {"email_status": ["subscribed", "cleaned"]},
            {"email_status": ["", ""]},
            {"state": ["unknown", "deliverable to the door"]},
        ],
    )
    def test_names_and_words_that_may_mean_something_else_are_not(self, columns):
        with pytest.raises(mv.ColumnError, match="is not an export of a verifier that is known"):
            mv.read_verdicts(another(**columns))

    def test_other_columns_that_may_be_meant_are_named(self):
        export = another(email_status=["valid", "ok"], verification_status=["invalid", "ok"])
        with pytest.warns(UserWarning, match="column 'email_status'; 'verification_status' is not"):
            found = mv.read_verdicts(export)
        assert found["email_verdict"].tolist() == ["valid", "valid"]

    def test_result_columns_of_ours_with_words_of_another_are_refused_with_a_way_out(self):
        export = another(verdict=["good", "bad"], status=["ok", "ok"])
        with pytest.raises(mv.ColumnError, match="if another verifier wrote the frame, name its"):
            mv.read_verdicts(export)
        columns = {"email": "mail", "status": "verdict"}
        outcomes = {"good": "valid", "bad": "invalid"}
        found = mv.read_verdicts(export, columns=columns, outcomes=outcomes)
        assert found["email_verdict"].tolist() == ["valid", "invalid"]

    def test_two_columns_without_a_header_are_read_in_any_order(self, tmp_path):
        path = tmp_path / "all.csv"
        path.write_text('email_disabled,"ada@firm.example"\nok,"bo@firm.example"\n')
        with (
            pytest.warns(UserWarning, match="results in column 'column_1'"),
            pytest.warns(UserWarning, match="no header line"),
        ):
            found = mv.read_verdicts(path)
        assert found["email_verdict"].tolist() == ["invalid", "valid"]


AFTERSHIP = {
    "email": "ada@firm.example",
    "reachable": "unknown",
    "syntax": {"username": "ada", "domain": "firm.example", "valid": True},
    "smtp": {
        "host_exists": True,
        "full_inbox": False,
        "catch_all": True,
        "deliverable": False,
        "disabled": False,
    },
    "gravatar": None,
    "suggestion": "",
    "disposable": False,
    "role_account": False,
    "free": False,
    "has_mx_records": True,
}


@pytest.mark.parametrize(
    "shape",
    [
        json.dumps,
        lambda rows: "\n".join(map(json.dumps, rows)),
        lambda rows: json.dumps({"data": rows}, indent=1),
    ],
)
def test_json_is_read_in_every_shape(tmp_path, shape):
    rows = [AFTERSHIP, AFTERSHIP | {"email": "bo@firm.example", "reachable": "no", "smtp": None}]
    path = tmp_path / "results.json"
    path.write_text(shape(rows))
    found = mv.read_verdicts(path)
    assert found["email"].tolist() == ["ada@firm.example", "bo@firm.example"]
    assert found["email_why"].tolist() == ["catch_all", "inconclusive"]
    assert found["email_source"].tolist() == ["AfterShip"] * 2


def test_objects_without_results_are_counted(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps([AFTERSHIP, {"page": 2}]))
    with pytest.warns(UserWarning, match="1 object of 2 without results of a known form"):
        assert len(mv.read_verdicts(path)) == 1


CELLS = ["ada@firm.example", "info@firm.example", "ada@", "a@x.example; b@y.example", None]


@pytest.mark.parametrize("columns", ["short", "core", "all"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_verified_frame_is_read_too_also_as_a_file(tmp_path, columns, ending):
    with pytest.warns(UserWarning, match="several addresses"):
        out = mv.verify(
            pd.DataFrame({"mail": CELLS}), "mail", validation_type="regex", columns=columns
        )
    path = tmp_path / f"out.{ending}"
    if ending == "jsonl":
        path.write_text(out.to_json(orient="records", lines=True, date_format="iso"))
    else:
        out.to_csv(path, index=False) if ending == "csv" else out.to_parquet(path)
    for found in (mv.read_verdicts(path), mv.read_verdicts(out)):
        assert found["email_verdict"].tolist()[:4] == ["valid", "valid", "invalid", "unknown"]
        assert found["email_status"].tolist() == ["done"] * 4 + ["missing"]
        assert found["email_why"].tolist() == out["mail_why"].tolist()
        assert found["email_role"].tolist() == out["mail_role"].tolist()


def test_a_list_that_was_verified_before_has_the_verdicts_of_the_export():
    out = mv.verify(pd.DataFrame({"email": CELLS[:3]}), "email", validation_type="regex")
    found = mv.read_verdicts(out.assign(**{"ZB Status": ["invalid", "valid", "valid"]}))
    assert found["email_verdict"].tolist() == ["invalid", "valid", "valid"]
    assert set(found["email_source"]) == {"ZeroBounce"}


def test_what_is_read_is_a_verified_frame(tmp_path):
    found = mv.read_verdicts(zerobounce())
    assert mv.summary(found)["rows"].to_dict()["invalid"] == 1
    assert "2 answered by ZeroBounce" in mv.report(found, "email").to_html()
    assert mv.decide(found, "email")["email_action"].tolist() == ["send", "drop"]
    again = mv.verify(
        pd.read_csv(io.StringIO(found.to_csv(index=False))),
        "email",
        validation_type="regex",
        columns="all",
    )
    assert set(again["email_source"]) == {"local"}


def test_no_service_is_called_as_a_result_column_of_ours():
    assert not {each.service for each in verifier_layouts()} & set(RESULT_NAMES)
    assert set(FLAGS) < set(RESULT_NAMES)


@pytest.mark.filterwarnings("ignore:known=")
class TestKnown:
    def test_only_valid_and_invalid_settle_an_address_and_a_contradiction_does_not(self):
        export = pd.DataFrame(
            [
                ("a@X.example", "valid"),
                ("a@x.EXAMPLE", "valid"),
                ("b@x.example", "invalid"),
                ("c@x.example", "catch-all"),
                ("d@x.example", "unknown"),
                ("e@x.example", "valid"),
                ("e@x.example", "invalid"),
                ("f@x.example", ""),
                ("f@x.example", "invalid"),
                ("no address", "valid"),
                (None, "valid"),
            ],
            columns=["email", "ZB Status"],
        )
        rows = read_known(export).rows.to_pandas()
        assert dict(zip(rows["email"], rows["result"], strict=True)) == {
            "a@x.example": "valid",
            "b@x.example": "invalid",
            "f@x.example": "invalid",
        }
        assert set(rows["source"]) == {"ZeroBounce"}

    @pytest.mark.parametrize(
        ("by", "wanted", "asked"),
        [
            ("regex", "mx", 1),
            ("mx", "mx", 0),
            ("mx", "smtp", 1),
            ("smtp", "mx_blacklist", 1),
            ("smtp", "smtp", 0),
        ],
    )
    @pytest.mark.parametrize("columns", ["core", "all"])
    def test_what_is_valid_by_a_type_that_asks_less_is_open(self, by, wanted, asked, columns):
        known = verify_scripted(["ada@plain.example"], by, columns)
        backend = ScriptedBackend()
        mv.verify(
            ["ada@plain.example"],
            validation_type=wanted,
            backend=backend,
            journal=None,
            known=known,
        )
        assert sum(map(len, backend.asked)) == asked

    def test_it_says_how_old_its_answers_are(self):
        export = zerobounce()
        assert read_known(export).describe() == (
            "2 addresses are settled and not asked; the answers are without dates"
        )
        dated = mv.read_verdicts(
            export.assign(day=["2024-05-01", "2026-02-03"]),
            columns={"email": "E-Mail", "status": "ZB Status", "at": "day"},
        )
        for known in (dated, pd.read_csv(io.StringIO(dated.to_csv(index=False)))):
            assert read_known(known).age() == "from 2024-05-01 to 2026-02-03"
        assert read_known(dated.iloc[:1]).age() == "from 2024-05-01 to 2024-05-01"

    def test_older_answers_are_left_out_only_on_demand(self):
        export = zerobounce(day=["2024-05-01", None])
        columns = {"email": "E-Mail", "status": "ZB Status", "at": "day"}
        known = read_known(mv.read_verdicts(export, columns=columns))
        now = datetime(2026, 2, 10, tzinfo=UTC)
        assert len(known.settled_for("smtp", None, now).rows) == 2
        left = known.settled_for("smtp", 30 * 86400, now)
        assert left.describe() == (
            "1 address is settled and not asked; the answers are without dates; 1 older answer is left out"
        )
        assert len(known.settled_for("smtp", float("inf"), now).rows) == 2

    def test_max_age_counts_where_the_caller_gave_it(self):
        export = zerobounce(day=["2024-05-01", "2024-05-01"])
        columns = {"email": "E-Mail", "status": "ZB Status", "at": "day"}
        known = mv.read_verdicts(export, columns=columns)
        addresses = ["ada@firm.example", "bo@firm.example"]
        with pytest.warns(UserWarning, match="known=: 2 addresses are settled"):
            old = mv.verify(addresses, validation_type="regex", known=known)
        with pytest.warns(UserWarning, match="known=: 0 addresses .* 2 older answers are left out"):
            new = mv.verify(addresses, validation_type="regex", known=known, max_age="30D")
        assert set(old["source"]) == {"another verifier"}
        assert set(new["source"]) == {"local"}

    def test_what_we_settled_is_known_from_an_earlier_run(self):
        out = mv.verify(["a@x.example"], validation_type="regex", columns="all").assign(
            clean="a@x.example"
        )
        assert read_known(out).rows["source"].to_pylist() == ["journal"]
        assert (
            read_known(mv.read_verdicts(zerobounce())).rows["source"].to_pylist()
            == ["ZeroBounce"] * 2
        )


def verify_scripted(emails, validation_type, columns):
    backend = ScriptedBackend(free=validation_type == "regex")
    options = {
        "validation_type": validation_type,
        "backend": backend,
        "journal": None,
        "columns": columns,
    }
    return mv.verify(pd.DataFrame({"email": emails}), "email", **options)


LIST = [
    "ada@plain.example",
    "Bo <bo@Plain.example>",
    "cy@plain.example",
    "di@gone.example",
    "bo@plain.example",
    "bad@@x",
    None,
]
SETTLED = pd.DataFrame(
    [
        ("ADA@plain.example".lower(), "invalid", "mailbox_not_found"),
        ("bo@PLAIN.example", "valid", ""),
        ("cy@plain.example", "catch-all", ""),
        ("bad@@x", "valid", ""),
        ("eve@elsewhere.example", "valid", ""),
    ],
    columns=["E-Mail", "ZB Status", "ZB Sub Status"],
)


@pytest.fixture(scope="module")
def world():
    with World() as opened:
        yield opened


@pytest.mark.filterwarnings("ignore:known=")
class TestVerifyKnown:
    def test_what_the_other_settled_is_not_asked_and_what_it_left_open_is(self, world, tmp_path):
        frame, journal = pd.DataFrame({"email": LIST}), tmp_path / "j.db"
        options = {"backend": world.url, "journal": journal, "known": SETTLED}
        found = mv.plan(frame, "email", **options)
        assert (found.unique, found.given, found.known, found.to_submit) == (4, 2, 0, 2)
        used = mv.quota(world.url).used
        out = mv.verify(frame, "email", **options)
        assert mv.quota(world.url).used == used + found.to_submit
        assert out["email_verdict"].tolist()[:6] == [
            "invalid",
            "valid",
            "valid",
            "invalid",
            "valid",
            "invalid",
        ]
        assert out["email_source"].tolist() == [
            "ZeroBounce",
            "ZeroBounce",
            "remote",
            "remote",
            "ZeroBounce",
            "local",
            pd.NA,
        ]
        assert out["email_why"].tolist()[:2] == ["mailbox_not_found", pd.NA]
        assert out["email_role"].tolist()[:3] == [pd.NA, pd.NA, False]

        # Not kept as ours.
        later = mv.verify(frame, "email", backend=world.url, journal=journal, offline=True)
        assert later["email_status"].tolist() == [
            "pending",
            "pending",
            "done",
            "done",
            "pending",
            "done",
            "missing",
        ]

    @pytest.mark.slow
    def test_the_other_is_preferred_to_the_journal(self, world, tmp_path):
        options = {
            "backend": world.url,
            "journal": tmp_path / "j.db",
            "columns": ["verdict", "source"],
        }
        mv.verify(["ada@plain.example"], **options)
        assert mv.verify(["ada@plain.example"], **options)["source"].tolist() == ["journal"]
        assert mv.verify(["ada@plain.example"], **options, known=SETTLED)["source"].tolist() == [
            "ZeroBounce"
        ]
        assert (
            mv.plan(
                ["ada@plain.example"], backend=world.url, journal=tmp_path / "j.db", known=SETTLED
            ).given
            == 1
        )

    @pytest.mark.slow
    @each_row("columns", ["short", "core", "all", ["verdict"]])
    def test_the_source_is_always_there(self, columns):
        out = mv.verify(LIST, validation_type="regex", known=SETTLED, columns=columns)
        assert out["source"].tolist() == [
            "ZeroBounce",
            "ZeroBounce",
            "local",
            "local",
            "ZeroBounce",
            "local",
            pd.NA,
        ]
        assert out.columns.tolist().count("source") == 1
        assert "source" not in mv.verify(LIST, validation_type="regex", columns=["verdict"])

    @each_row("give", [lambda f: f, mv.read_verdicts, pl.from_pandas, pa.Table.from_pandas])
    def test_it_is_given_as_a_frame(self, give):
        out = mv.verify(LIST, validation_type="regex", known=give(SETTLED))
        assert out["source"].tolist()[:2] == ["ZeroBounce"] * 2

    def test_it_is_given_as_a_file_and_also_to_start(self, tmp_path):
        SETTLED.to_csv(tmp_path / "export.csv", index=False)
        run = mv.start(LIST, validation_type="regex", known=tmp_path / "export.csv")
        assert run.result()["source"].tolist()[:2] == ["ZeroBounce"] * 2
        assert run.progress.total == 3  # what is asked

    def test_columns_of_a_frame_of_any_kind(self):
        frame = pl.DataFrame({"work": LIST, "home": list(reversed(LIST))})
        out = mv.verify(frame, ["work", "home"], validation_type="regex", known=SETTLED)
        assert out["work_source"].to_list() == list(reversed(out["home_source"].to_list()))
        assert out["work_source"].to_list()[0] == "ZeroBounce"

    def test_nothing_is_asked_if_all_is_known(self):
        out = mv.verify(
            ["bo@plain.example"] * 2, backend="http://127.0.0.1:9", journal=None, known=SETTLED
        )
        assert out["verdict"].tolist() == ["valid", "valid"]

    def test_a_list_is_no_result(self):
        with pytest.raises(mv.SettingsError, match="give what read_verdicts returned"):
            mv.verify(LIST, validation_type="regex", known=["bo@plain.example"])

    @pytest.mark.slow
    def test_a_file_with_its_source_is_verified_again(self):
        out = mv.verify(
            pd.DataFrame({"email": LIST}), "email", validation_type="regex", known=SETTLED
        )
        read = pd.read_csv(
            io.StringIO(out.drop(columns=["email_clean", "email_change"]).to_csv(index=False))
        )
        again = mv.verify(read, "email", validation_type="regex", known=SETTLED)
        assert again["email_source"].tolist() == out["email_source"].tolist()
        # Nobody's verdict stays beside the name of another one.
        alone = mv.verify(read, "email", validation_type="regex")
        assert set(alone["email_source"].dropna()) == {"local"}
        with pytest.raises(mv.SettingsError, match="'email_source' that mailverdict did not write"):
            mv.verify(
                read.assign(email_source="shop"), "email", validation_type="regex", known=SETTLED
            )
