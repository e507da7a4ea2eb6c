"""Workbooks as other programs read, write and change them."""

import zipfile
from xml.etree import ElementTree

from python_calamine import CalamineWorkbook

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
LINK = f'<Relationships xmlns="{PACKAGE}"><Relationship Id="r" Type="{OFFICE}/%s" Target="%s"/></Relationships>'
ADDED = b'<sheet name="mine" sheetId="99" r:id="rId1"/></sheets>'


def cells_of(path):
    """The rows of each sheet, by its name; None is an empty cell."""
    book = CalamineWorkbook.from_path(str(path))
    whole = {
        name: book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        for name in book.sheet_names
    }
    return {
        name: [tuple(None if cell == "" else cell for cell in row) for row in rows]
        for name, rows in whole.items()
    }


def sheet_xml(path, number=1):
    """The XML of a sheet."""
    with zipfile.ZipFile(path) as book:
        return ElementTree.fromstring(book.read(f"xl/worksheets/sheet{number}.xml"))


def parts_of(path):
    with zipfile.ZipFile(path) as book:
        return {name: book.read(name) for name in book.namelist()}


def change_parts(path, start, change):
    """Write a workbook anew with changed octets in the parts whose names start so."""
    parts = parts_of(path)
    with zipfile.ZipFile(path, "w") as book:
        for name, octets in parts.items():
            book.writestr(name, change(octets) if name.startswith(start) else octets)


def add_sheet(path):
    """Add a sheet with the cells of the first one."""
    change_parts(path, "xl/workbook.xml", lambda octets: octets.replace(b"</sheets>", ADDED))


def write_raw(
    path,
    rows="",
    *,
    sheet='<worksheet xmlns="%s"><sheetData>%s</sheetData></worksheet>',
    strings=None,
):
    """A workbook with these rows as its XML, and these shared texts."""
    namespace = MAIN.strip("{}")
    book = f'<workbook xmlns="{namespace}" xmlns:r="{OFFICE}"><sheets><sheet name="s" sheetId="1" r:id="r"/></sheets>'
    parts = {
        "_rels/.rels": LINK % ("officeDocument", "xl/workbook.xml"),
        "xl/_rels/workbook.xml.rels": LINK % ("worksheet", "worksheets/sheet1.xml"),
        "xl/workbook.xml": f"{book}</workbook>",
        "xl/worksheets/sheet1.xml": sheet % (namespace, rows) if isinstance(sheet, str) else sheet,
        "xl/sharedStrings.xml": f'<sst xmlns="{namespace}"/>' if strings is None else strings,
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, octets in parts.items():
            file.writestr(name, octets)
    return path
