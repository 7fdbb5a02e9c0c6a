// Reads the OpenAPI document: operations, parameters, fields and examples.

let api;

export function set_document(fetched) {
  api = fetched;
}

export function resolve(value) {
  let found = value;
  for (let steps = 0; found && found.$ref && steps < 20; ++steps)
    found = found.$ref.slice(2).split("/").reduce((place, name) => place[name], api);
  return found || {};
}

// In OpenAPI 3.1 a description beside a reference replaces the description of its target.
export function description_of(schema) {
  return (schema && schema.description) || resolve(schema).description || "";
}

function name_of(schema) {
  return schema && schema.$ref ? schema.$ref.split("/").pop() : null;
}

// The fields of a schema, including those of allOf.
function fields_of(schema) {
  const whole = resolve(schema);
  const fields = {}, required = new Set(whole.required || []);
  for (const part of whole.allOf || []) {
    const below = fields_of(part);
    Object.assign(fields, below.fields);
    below.required.forEach((name) => required.add(name));
  }
  Object.assign(fields, whole.properties || {});
  return { fields, required };
}

function limits_of(schema) {
  const number = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 6 });
  const limits = [];
  if (schema.minimum !== undefined && schema.maximum !== undefined) limits.push(`${number(schema.minimum)} to ${number(schema.maximum)}`);
  if (schema.maxLength) limits.push(`up to ${number(schema.maxLength)} characters`);
  if (schema.maxItems) limits.push(`up to ${number(schema.maxItems)}`);
  if (schema.default !== undefined) limits.push(`default ${JSON.stringify(schema.default)}`);
  return limits;
}

function base_type(whole) {
  if (whole.enum) return whole.enum.map((value) => (value === null ? "null" : String(value))).join(" | ");
  if (whole.const !== undefined) return String(whole.const);
  if (whole.oneOf || whole.anyOf) return (whole.oneOf || whole.anyOf).map(type_text).join(" | ");
  let type = [].concat(whole.type || (whole.properties || whole.allOf ? "object" : "any")).join(" | ");
  if (whole.items) type = type.replace("array", `array of ${name_of(whole.items) || type_text(whole.items)}`);
  return whole.format === "date-time" ? type.replace("string", "time") : type;
}

export function type_text(schema) {
  const whole = resolve(schema);
  return [base_type(whole), ...limits_of(whole)].join(", ");
}

// Fields with dotted names, nested ones included: [{name, schema, is_required}].
export function flat_fields(schema, prefix = "", depth = 0) {
  const whole = resolve(schema);
  if (whole.type === "array") return flat_fields(whole.items, `${prefix}[].`, depth);
  const { fields, required } = fields_of(whole);
  return Object.entries(fields).flatMap(([name, field]) => {
    const one = { name: prefix + name, schema: field, is_required: required.has(name) };
    if (depth >= 2) return [one];
    const below = resolve(field);
    if (below.items) return [one, ...flat_fields(below.items, `${prefix}${name}[].`, depth + 1)];
    const nested = [below, ...(below.oneOf || []), ...(below.anyOf || [])].map(resolve).find((each) => each.properties);
    return nested ? [one, ...flat_fields(nested, `${prefix}${name}.`, depth + 1)] : [one];
  });
}

// What a request body is sent as: [content type, media type object], or null.
export function request_media(operation) {
  const content = operation.requestBody ? operation.requestBody.content : {};
  return Object.entries(content)[0] || null;
}

export function parameters_of(operation) {
  return (operation.parameters || []).map(resolve);
}

export function needs_key(operation) {
  return operation["x-access"] !== "everyone";
}

export function good_response(operation) {
  const status = Object.keys(operation.responses).find((each) => /^2/.test(each));
  return status ? resolve(operation.responses[status]) : {};
}

// Operations by tag: [{tag, operations: [{method, path, operation, is_webhook}]}].
export function sections() {
  const tags = new Map(api.tags.map((tag) => [tag.name, { tag, operations: [] }]));
  const add = (method, path, operation, is_webhook) =>
    tags.get(operation.tags[0]).operations.push({ method, path, operation, is_webhook });
  for (const [path, item] of Object.entries(api.paths))
    for (const [method, operation] of Object.entries(item)) add(method, path, operation, false);
  for (const item of Object.values(api.webhooks || {}))
    for (const [method, operation] of Object.entries(item)) add(method, "", operation, true);
  return [...tags.values()].filter((each) => each.operations.length);
}
