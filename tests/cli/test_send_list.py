"""`verify --for`: two files for the importer of a service, beside the output."""

import pytest

EXPORT = (
    "Record ID,First Name,Email\n"
    "101,Ada,Ada <ada@x.org>\n"
    "102,Bob,bob@x\n"
    "103,Cy,cy@gmial.com\n"
    "104,Ada,ada@x.org\n"
)


@pytest.fixture
def export(tmp_path):
    path = tmp_path / "export.csv"
    path.write_text(EXPORT)
    return path


def test_both_files_are_written_beside_the_whole_table(run, export, tmp_path):
    output = tmp_path / "out.csv"
    options = ("-t", "regex", "--policy", "balanced", "--for", "hubspot")
    status, _, said = run("verify", export, "-o", output, *options)
    assert status == 0
    assert len(output.read_text().splitlines()) == 5
    assert (tmp_path / "out-hubspot.csv").read_text() == "Record ID,Email\n101,ada@x.org\n"
    assert (tmp_path / "out-hubspot-remove.csv").read_text() == "Record ID,Email\n102,bob@x\n"
    assert "out-hubspot.csv (1 to send)" in said
    assert "in neither file: 1 to review" in said


def test_a_list_without_anybody_has_its_header(run, tmp_path):
    path = tmp_path / "export.csv"
    path.write_text("Email\ncy@gmial.com\n")
    options = ("-t", "regex", "--policy", "balanced", "--for", "klaviyo")
    status, _, _ = run("verify", path, "-o", tmp_path / "out.csv", *options)
    assert status == 0
    assert (tmp_path / "out-klaviyo.csv").read_text() == "Email Address\n"
    assert (tmp_path / "out-klaviyo-remove.csv").read_text() == "Email\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "out.csv", "--for", "hubspot"), "add --policy balanced"),
        (("--policy", "balanced", "--for", "hubspot"), "name it with --output"),
        (("-o", "-", "--policy", "balanced", "--for", "hubspot"), "name it with --output"),
        (("-o", "out.csv", "--policy", "balanced", "--for", "hubsport"), "mean 'hubspot'"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_verified(
    run, export, monkeypatch, options, said
):
    monkeypatch.chdir(export.parent)
    status, _, error = run("verify", export, "-t", "regex", *options)
    assert status == 2
    assert said in error
    assert [path.name for path in export.parent.iterdir()] == ["export.csv"]


def test_another_file_of_the_command_is_not_replaced(run, export):
    source = export.rename(export.parent / "out-hubspot.csv")
    options = ("-t", "regex", "--policy", "balanced", "--for", "hubspot")
    status, _, error = run("verify", source, "-o", source.parent / "out.csv", *options)
    assert status == 2
    assert "would replace" in error
    assert source.read_text() == EXPORT
