"""Workbooks as other programs read, write and change them."""

import struct
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


# --- ODS and XLSB, by hand: no library here writes them ---------------------------------------------

ODF = "urn:oasis:names:tc:opendocument:xmlns"
ODS_HEAD = (
    f'<office:document-content xmlns:office="{ODF}:office:1.0" xmlns:table="{ODF}:table:1.0" '
    f'xmlns:text="{ODF}:text:1.0" xmlns:style="{ODF}:style:1.0" '
    'xmlns:xlink="http://www.w3.org/1999/xlink">'
    '<office:automatic-styles><style:style style:name="hidden" style:family="table">'
    '<style:table-properties table:display="false"/></style:style></office:automatic-styles>'
    "<office:body><office:spreadsheet>"
)
ODS_END = "</office:spreadsheet></office:body></office:document-content>"


def ods_row(*cells, repeats=1):
    """A row; a text is a cell of text, None an empty one, and XML is as it is."""
    parts = []
    for cell in cells:
        if cell is None:
            parts.append("<table:table-cell/>")
        elif cell.startswith("<"):
            parts.append(cell)
        else:
            text = f"<text:p>{cell}</text:p>"
            parts.append(f'<table:table-cell office:value-type="string">{text}</table:table-cell>')
    row = "".join(parts)
    return f'<table:table-row table:number-rows-repeated="{repeats}">{row}</table:table-row>'


def write_ods(path, sheets, *, hidden=()):
    """A spreadsheet as LibreOffice writes it, with the XML of the rows of each sheet."""
    body = ""
    for name, rows in sheets.items():
        style = ' table:style-name="hidden"' if name in hidden else ""
        body += f'<table:table table:name="{name}"{style}>{rows}</table:table>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr("content.xml", ODS_HEAD + body + ODS_END)
    return path


def write_xlsb(path, sheets):
    """A binary workbook ([MS-XLSB]) with cells of text, numbers and truth values."""
    bundles = relations = b""
    parts = {}
    for number, (name, rows) in enumerate(sheets.items(), 1):
        data = b""
        for at, row in enumerate(rows):
            data += record(0, struct.pack("<I", at) + bytes(13))
            for column, cell in enumerate(row):
                place = struct.pack("<II", column, 0)
                if isinstance(cell, bool):
                    data += record(4, place + bytes([cell]))
                elif isinstance(cell, str):
                    data += record(6, place + wide(cell))
                elif cell is not None:
                    data += record(5, place + struct.pack("<d", cell))
        size = struct.pack("<IIII", 0, len(rows) - 1, 0, max(map(len, rows)) - 1)
        sheet = record(148, size) + record(145) + data + record(146)
        parts[f"xl/worksheets/sheet{number}.bin"] = record(129) + sheet + record(130)
        bundles += record(156, struct.pack("<II", 0, number) + wide(f"rId{number}") + wide(name))
        relations += (
            f'<Relationship Id="rId{number}" Type="{OFFICE}/worksheet" '
            f'Target="worksheets/sheet{number}.bin"/>'
        ).encode()
    book = record(131) + record(153, bytes(12)) + record(143) + bundles + record(144) + record(132)
    parts["xl/workbook.bin"] = book
    start = f'<Relationships xmlns="{PACKAGE}">'.encode()
    parts["xl/_rels/workbook.bin.rels"] = start + relations + b"</Relationships>"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, octets in parts.items():
            packed.writestr(name, octets)
    return path


def record(kind, octets=b""):
    """A record: its kind and its length in groups of seven bits, then its octets."""
    head = b""
    for number in (kind, len(octets)):
        rest = number
        while rest > 127:
            head += bytes([rest & 127 | 128])
            rest >>= 7
        head += bytes([rest])
    return head + octets


def wide(text):
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")
