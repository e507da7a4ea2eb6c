"""The tables of the sandbox hold together."""

from __future__ import annotations

import ipaddress

import email_validator

from mailverdict.checks.dns.names import normal_name
from mailverdict.model.evidence import DnsOutcome
from mailverdict.sandbox.dns_table import DnsFault, ZoneTable
from mailverdict.sandbox.zones import CASES, EXCHANGE_ADDRESSES, sandbox_zones, shared_domains


def test_all_records_can_be_read():
    ZoneTable(sandbox_zones())


def test_no_name_is_in_two_tables():
    names = (
        [case.domain for case in CASES]
        + [domain for _, domain in shared_domains()]
        + list(EXCHANGE_ADDRESSES)
    )
    assert len(names) == len(set(names))


def test_names_are_in_normal_form():
    for name in sandbox_zones():
        assert normal_name(name) == name


def test_domains_are_accepted_in_addresses():
    for name in [case.domain for case in CASES] + [domain for _, domain in shared_domains()]:
        email_validator.validate_email(f"ada@{name}", check_deliverability=False)


def test_every_case_says_why_in_words_of_its_own():
    assert all(case.why for case in CASES)
    assert len({case.why for case in CASES}) == len(CASES)


def test_every_outcome_and_every_fault_has_a_case():
    assert {case.outcome for case in CASES} == set(DnsOutcome)
    assert {fault for case in CASES for fault in case.records.faults.values()} == set(DnsFault)


def test_made_up_exchanges_are_on_loopback_each_on_its_own_address():
    assert len(set(EXCHANGE_ADDRESSES.values())) == len(EXCHANGE_ADDRESSES)
    assert all(ipaddress.ip_address(address).is_loopback for address in EXCHANGE_ADDRESSES.values())


def test_shared_domains_lead_to_hosts_that_there_are():
    hosts = {record.split()[1] for exchanges, _ in shared_domains() for record in exchanges}
    assert hosts <= set(EXCHANGE_ADDRESSES)


def test_exchanges_have_a_name_for_their_address():
    zones = sandbox_zones()
    for host, address in EXCHANGE_ADDRESSES.items():
        assert zones[ipaddress.ip_address(address).reverse_pointer].records == {"PTR": (host,)}, (
            host
        )
