"""The send list of a service, and those to take off there: nobody may be unsubscribed by mistake."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.frames.results import Results
from mailverdict.frames.send_list import SendListMaker
from mailverdict.table.importers import find_importer, importers


def verified(**columns):
    """A verified frame whose column of addresses is `Email`."""
    return mv.verify(pd.DataFrame(columns), "Email", validation_type="regex")


def decided(out, position, decision, address=None):
    """The frame with a decision that a person took on the page."""
    for name, value in (("decision", decision), ("decided_address", address)):
        label = f"Email_{name}"
        if label not in out:
            out[label] = pd.Series(pd.NA, index=out.index, dtype="string")
        out.iloc[position, out.columns.get_loc(label)] = value
    return out


def with_chosen_suggestion(identifier):
    """One row, for whose address a person has chosen the suggestion, which is verified."""
    out = verified(**{"Record ID": [identifier], "Email": ["bob@gmial.com"]})
    out = decided(out, 0, "suggestion", "bob@gmail.com")
    out["Email_clean"] = pd.Series(["bob@gmail.com"], dtype="string")
    out["Email_suggestion"] = pd.Series([None], dtype="string")
    return out


class TestSend:
    def test_holds_the_identifier_and_the_repaired_address_and_nothing_else(self):
        out = verified(
            **{"Record ID": ["7", "8"], "Note": ["a", "b"], "Email": ["<ada@x.org>", ""]}
        )
        files = mv.send_list(out, service="hubspot")
        assert files.send.to_dict("list") == {"Record ID": ["7"], "Email": ["ada@x.org"]}

    @pytest.mark.parametrize("service", importers())
    def test_the_address_has_the_name_that_the_importer_expects(self, service):
        files = mv.send_list(verified(Email=["ada@x.org", "nobody@x"]), service=service)
        importer = find_importer(service)
        assert files.send.to_dict("list") == {importer.address: ["ada@x.org"]}
        assert files.remove.to_dict("list") == {importer.remove_address: ["nobody@x"]}

    def test_identifiers_beside_empty_cells_stay_whole_numbers(self):
        out = verified(Id=[12345678901.0, None], Email=["ada@x.org", "bob@x.org"])
        files = mv.send_list(out, service="salesforce")
        assert files.send["Id"].fillna("").tolist() == ["12345678901", ""]

    def test_a_mailbox_is_in_the_list_once_and_its_other_rows_are_not_taken_off(self):
        out = verified(Email=["ada@gmail.com", "A.da@googlemail.com", "bob@x.org"])
        files = mv.send_list(out, service="mailchimp")
        assert files.send["Email Address"].tolist() == ["ada@gmail.com", "bob@x.org"]
        assert len(files.remove) == 0
        assert any("1 row has a mailbox" in note for note in files.notes)

    def test_of_several_addresses_of_a_record_the_first_one_keeps_its_identifier(self):
        both = pd.DataFrame({"Record ID": ["7"], "Email": ["ada@x.org; bob@y.org; cy@z"]})
        out = mv.verify(mv.explode(both, "Email"), "Email", validation_type="regex")
        files = mv.send_list(out, service="hubspot")
        assert files.send.fillna("").values.tolist() == [["7", "ada@x.org"], ["", "bob@y.org"]]
        assert len(files.remove) == 0  # the record is that of somebody who is sent

    def test_cells_that_look_like_a_formula_are_not_changed(self):
        out = verified(**{"Record ID": ["=1+1", "-2"], "Email": ["+ada@x.org", "=nobody"]})
        files = mv.send_list(out, service="hubspot")
        assert files.send.values.tolist() == [["=1+1", "+ada@x.org"]]
        assert files.remove.values.tolist() == [["-2", "=nobody"]]


class TestRemove:
    def test_holds_dropped_and_suppressed_rows_only(self):
        out = verified(
            **{
                "Record ID": list("12345"),
                "Email": ["ada@x.org", "bob@x", "cy@x.org", "dan@gmial.com", None],
            }
        )
        out = mv.suppress(out, "Email", ["cy@x.org"])
        files = mv.send_list(out, service="hubspot")
        assert files.send["Record ID"].tolist() == ["1"]
        assert files.remove["Record ID"].tolist() == ["2", "3"]
        assert any("1 to review, 1 without a verdict" in note for note in files.notes)

    @pytest.mark.parametrize("verdict", ["unknown", "pending"])
    def test_never_holds_what_is_not_known(self, verdict):
        out = verified(Email=["ada@x.org"])
        if verdict == "unknown":
            out["Email_verdict"] = pd.Categorical(["unknown"], out["Email_verdict"].cat.categories)
        else:
            out["Email_verdict"] = pd.Categorical([None], out["Email_verdict"].cat.categories)
            out["Email_status"] = pd.Categorical(["pending"], out["Email_status"].cat.categories)
        for policy in ("strict", "balanced", "lenient"):
            files = mv.send_list(out, service="klaviyo", policy=policy)
            assert (len(files.send), len(files.remove)) == (0, 0)

    def test_the_old_address_goes_there_where_the_address_is_the_key(self):
        out = with_chosen_suggestion("1")
        files = mv.send_list(out, service="mailchimp")
        assert files.send["Email Address"].tolist() == ["bob@gmail.com"]
        assert files.remove["Email Address"].tolist() == ["bob@gmial.com"]
        files = mv.send_list(out, service="hubspot")  # which gives the record its new address
        assert files.send.values.tolist() == [["1", "bob@gmail.com"]]
        assert len(files.remove) == 0

    def test_a_row_without_its_identifier_is_known_by_its_address(self):
        files = mv.send_list(with_chosen_suggestion(None), service="hubspot")
        assert files.remove["Email"].tolist() == ["bob@gmial.com"]

    @pytest.mark.parametrize(
        "cell",
        ["Ada <ada@x.org>", " ADA@X.org", "mailto:ada@x.org", "ada\u200b@x.org", "ada＠x.org"],
    )
    def test_never_holds_a_cell_that_an_importer_may_read_as_the_address_that_is_sent(self, cell):
        files = mv.send_list(verified(Email=[cell]), service="mailchimp")
        assert files.send["Email Address"].str.lower().tolist() == ["ada@x.org"]
        assert len(files.remove) == 0

    def test_never_holds_a_person_who_is_sent_in_another_row(self):
        out = decided(verified(Email=["ada@x.org", "Ada@x.org"]), 1, "remove")
        files = mv.send_list(out, service="brevo")
        assert files.send["EMAIL"].tolist() == ["ada@x.org"]
        assert len(files.remove) == 0
        assert any("1 dropped row is not taken off" in note for note in files.notes)

    def test_a_person_is_in_it_once(self):
        out = verified(Email=["ada@x", "ADA@x", "bob@x"])
        files = mv.send_list(out, service="klaviyo")
        assert files.remove["Email"].tolist() == ["ada@x", "bob@x"]

    def test_a_cell_without_an_address_names_nobody_unless_its_row_has_an_identifier(self):
        columns = {"Record ID": ["1", None, "3"], "Email": ["nobody", "no one", "ada@x.org"]}
        files = mv.send_list(verified(**columns), service="hubspot")
        assert files.remove.values.tolist() == [["1", "nobody"]]


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table])
def test_both_files_are_of_the_kind_that_was_given(make):
    frame = make({"Record ID": ["1", "2"], "Email": ["ada@x.org", "nobody@x"]})
    files = mv.send_list(mv.verify(frame, "Email", validation_type="regex"), service="hubspot")
    assert isinstance(files.send, type(frame))
    assert list(files.send["Email"].to_pylist() if make is pa.table else files.send["Email"]) == [
        "ada@x.org"
    ]
    assert files.remove.shape == (1, 2)


def test_a_table_in_pieces_gives_the_same_lists():
    cells = ["bob@x", "ada@x.org", "cy@x.org", "Ada@X.org", "dan@y", "cy@x.org", "BOB@x"]
    whole = mv.decide(verified(**{"Record ID": list("1234567"), "Email": cells}), "Email")
    importer = find_importer("hubspot")
    makers = []
    for size in (1, 3, 7):
        maker = SendListMaker(importer, "Record ID", keeps_repeats=False)
        sent = []
        for start in range(0, len(whole), size):
            rows = Results(whole.iloc[start : start + size], "Email", None)
            sent += maker.add(rows, rows["action"]).to_pylist()
        makers.append((sent, maker.removed().to_pylist(), maker.notes()))
    assert makers[0] == makers[1] == makers[2]
    assert [row["Record ID"] for row in makers[0][0]] == ["2", "3"]
    assert [row["Record ID"] for row in makers[0][1]] == ["1", "5", "7"]
