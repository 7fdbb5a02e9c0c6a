"""Gives an embedded statement the C++ types of its parameters and columns.

Parameters are named in the SQL and cast where they first appear; a question mark after the name allows null:

    select id, status from endpoint where tenant_id = :tenant::text and (:since?::timestamptz is null or …)

Column types come from sql/columns.txt, which `./dev schema` writes by asking Postgres to describe every statement. A
column is a std::optional unless the statement says that it is never null:

    -- not null: id, status            these
    -- not null: all                   every column
    -- not null: all but reason        every column except these

The elements of an array are never null, unless the statement lists the column: `-- null elements: expires_at`.

Statements of a file that return the same columns share a row type by naming it, `-- row: history`: HistoryRow.

A statement with large parameters, `-- large`, lets its caller reserve memory: params(bytes).

Each statement becomes a struct of its parameters, in the order in which they first appear, with a `Row`:

    const auto rows = co_await link.run(sql::find_endpoints{.tenant = id, .since = {}});
    for (const auto& row : rows) use(row.status);
"""

import hashlib
import re

# `:name`, but neither a cast (`::text`) nor an array slice (`path[1:n]`).
PARAMETER = re.compile(r"(?<![:\w\]]):(?P<name>[a-z][a-z0-9_]*)(?P<optional>\?)?(?:::(?P<type>[a-z0-9_]+(?:\[\])?))?")
NUMBERED = re.compile(r"\$\d")
NOT_NULL = re.compile(r"^--\s*not null:\s*(.*?)\s*$", re.MULTILINE)
NULL_ELEMENTS = re.compile(r"^--\s*null elements:\s*(.*?)\s*$", re.MULTILINE)
LARGE = re.compile(r"^--\s*large\s*$", re.MULTILINE)
ROW = re.compile(r"^--\s*row:\s*([a-z][a-z0-9_]*)\s*$", re.MULTILINE)

# Postgres type: C++ type. A column's views point into the pg::Rows.
SCALARS = {
    "text": "std::string_view",
    "varchar": "std::string_view",
    "name": "std::string_view",
    "json": "std::string_view",
    "smallint": "int16_t",
    "integer": "int32_t",
    "bigint": "int64_t",
    "boolean": "bool",
    "double precision": "double",
    "uuid": "base::Uuid",
    "timestamp with time zone": "base::Timestamp",
    "bytea": "pg::Bytes",
    "jsonb": "pg::Json",
}
SPELLINGS = {
    "int": "integer", "int4": "integer", "int2": "smallint", "int8": "bigint", "bool": "boolean",
    "float8": "double precision", "timestamptz": "timestamp with time zone", "character varying": "varchar",
}
KEYWORDS = set("""and auto bool break case catch char class const continue default delete do double else enum explicit
export extern false float for friend goto if inline int long namespace new not operator or private protected public
register return short signed sizeof static struct switch template this throw true try typedef union unsigned using virtual
void while xor concept requires""".split())
# Members that every generated struct has.
RESERVED = {"params", "statement", "read"}


class TypeErrorInSql(Exception):
    pass


def scalar(postgres_type):
    return SCALARS.get(SPELLINGS.get(postgres_type, postgres_type))


def camel(name):
    return "".join(word.capitalize() for word in name.split("_"))


def member(name, what):
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name in KEYWORDS | RESERVED:
        raise TypeErrorInSql(f"{what} `{name}` cannot be a C++ name; give it another one")
    return name


def digest(text):
    return hashlib.md5(text.encode()).hexdigest()[:12]


def is_typed(source, texts):
    """Whether the statements of a file name their parameters. One that numbers any of them does not, as a whole."""
    is_named = NOT_NULL.search(source) or any(PARAMETER.search(text) for text in texts)
    return bool(is_named) and not any(NUMBERED.search(text) for text in texts)


def number_parameters(name, pieces):
    """(text with $1, $2 …, [(name, C++ type)]) of a statement given as (is_literal, text) pieces."""
    order, types, optional = [], {}, set()
    if name in KEYWORDS:
        raise TypeErrorInSql(f"`{name}` cannot be a C++ name; give the statement another one")

    def number(match):
        parameter = match["name"]
        if parameter not in order:
            order.append(member(parameter, f"`{name}`: parameter"))
            if parameter == name:
                raise TypeErrorInSql(f"`{name}`: a parameter cannot have the name of its statement")
            if not match["type"]:
                raise TypeErrorInSql(f"`{name}`: `:{parameter}` needs a cast where it first appears")
            types[parameter] = match["type"]
            if match["optional"]:
                optional.add(parameter)
        elif match["type"] and match["type"] != types[parameter]:
            raise TypeErrorInSql(f"`{name}`: `:{parameter}` is both {types[parameter]} and {match['type']}")
        return f"${order.index(parameter) + 1}::{types[parameter]}"

    text = "".join(piece if is_literal else PARAMETER.sub(number, piece) for is_literal, piece in pieces)
    return text, [(parameter, parameter_type(name, types[parameter], parameter in optional)) for parameter in order]


def parameter_type(statement, postgres_type, is_optional):
    element = postgres_type.removesuffix("[]")
    found = scalar(element)
    if not found:
        raise TypeErrorInSql(f"`{statement}`: there is no C++ type for parameters of type {postgres_type}")
    if element != postgres_type:
        found = f"pg::ArrayOf<{found}>"
    return f"std::optional<{found}>" if is_optional else found


def column_type(statement, name, postgres_type, may_be_null, may_have_nulls):
    element = postgres_type.removesuffix("[]")
    found = "std::string_view" if element == "jsonb" else scalar(element)
    if not found:
        raise TypeErrorInSql(f"`{statement}`: cast column `{name}` ({postgres_type}) to a type that C++ can read")
    if element != postgres_type:
        found = f"std::vector<std::optional<{found}>>" if may_have_nulls else f"std::vector<{found}>"
    return f"std::optional<{found}>" if may_be_null else found


def never_null(statement, comments, columns):
    """The columns that the statement's comments declare as never null."""
    marks = NOT_NULL.findall(comments)
    if not marks:
        return set()
    if len(marks) > 1:
        raise TypeErrorInSql(f"`{statement}`: more than one `-- not null:` line")
    is_inverse = marks[0] == "all" or marks[0].startswith("all but ")
    listed = {name.strip() for name in marks[0].removeprefix("all").removeprefix(" but ").split(",") if name.strip()} \
        if is_inverse else {name.strip() for name in marks[0].split(",")}
    for name in listed - set(columns):
        raise TypeErrorInSql(f"`{statement}`: `-- not null:` names `{name}`, which is not a column")
    return set(columns) - listed if is_inverse else listed


def read_columns(text):
    """{statement: (digest of its text, [(column, type)])} of sql/columns.txt."""
    described = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, hashed, columns = (line.split(" ", 2) + [""])[:3]
        pairs = [column.split(" ", 1) for column in columns.split(", ") if column]
        described[name] = (hashed, [(column, kind) for column, kind in pairs])
    return described


def with_null_elements(statement, comments, columns):
    """The array columns that the statement's comments declare to contain nulls."""
    listed = {name.strip() for line in NULL_ELEMENTS.findall(comments) for name in line.split(",")}
    for name in listed - {column for column, kind in columns if kind.endswith("[]")}:
        raise TypeErrorInSql(f"`{statement}`: `-- null elements:` names `{name}`, which is not an array column")
    return listed


def row_structure(name, statement, columns):
    """The C++ struct of a statement's rows."""
    not_null = never_null(statement.name, statement.comments, [column for column, _ in columns])
    nulls_inside = with_null_elements(statement.name, statement.comments, columns)
    # A column of type void carries nothing.
    columns = [(number, column, kind) for number, (column, kind) in enumerate(columns) if kind != "void"]
    for _, column, _ in columns:
        member(column, f"`{statement.name}`: column")
    if len({column for _, column, _ in columns}) != len(columns):
        raise TypeErrorInSql(f"`{statement.name}`: two columns have the same name")
    types = [(number, column, column_type(statement.name, column, kind, column not in not_null, column in nulls_inside))
             for number, column, kind in columns]
    lines = [f"struct {name} {{", *(f"  {kind} {column};" for _, column, kind in types)]
    if types:
        reading = ", ".join(f"rows.get<{kind}>(row, {number})" for number, _, kind in types)
        lines += [f"  static {name} read(const pg::Rows& rows, size_t row) {{ return {{{reading}}}; }}"]
    return "\n".join([*lines, "};"]) + "\n"


def params_function(parameters, is_large):
    """Encodes the parameters in the order of their numbers."""
    if is_large:
        adding = "".join(f".add({name})" for name, _ in parameters)
        return ("pg::Params params(size_t bytes = 0) const {\n  pg::Params encoded;\n  encoded.reserve(bytes);\n"
                f"  encoded.reserve_slots({len(parameters)}){adding};\n  return encoded;\n}}\n")
    if not parameters:
        return "pg::Params params() const { return pg::Params(); }\n"
    adding = "".join(f".add({name})" for name, _ in parameters)
    return ("pg::Params params() const {\n  pg::Params encoded;\n"
            f"  encoded.reserve_slots({len(parameters)}){adding};\n  return encoded;\n}}\n")


def indent(text):
    return "".join(f"  {line}\n" for line in text.splitlines())


class Structures:
    """The structs of the statements of one file; statements that name the same row share one."""

    def __init__(self):
        self.rows = {}
        self.written = set()

    def of(self, statement, columns, definition):
        """The C++ struct of a statement; `definition` is its pg::Statement."""
        shared = ROW.search(statement.comments)
        before, row = "", indent(row_structure("Row", statement, columns))
        if shared:
            name = camel(shared[1]) + "Row"
            text = row_structure(name, statement, columns)
            if self.rows.setdefault(name, text) != text:
                raise TypeErrorInSql(f"`{statement.name}`: its columns are not those of the other `{shared[1]}` rows")
            before, row = text if name not in self.written else "", f"  using Row = {name};\n"
            self.written.add(name)
        members = "".join(f"  {kind} {name};\n" for name, kind in statement.parameters)
        return (f"{before}struct {statement.name} {{\n{members}{row}"
                f"  {definition}\n{indent(params_function(statement.parameters, LARGE.search(statement.comments)))}}};\n\n")
