/** HTML text of the page `/docs`: escaping, and how a schema is shown. Pure. Implements `docs/contract/rest.md#beside-api`. */

export type Fields = Readonly<Record<string, unknown>>;

const prefix = '#/components/schemas/';

export function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

export function escape(value: string): string {
  return value.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Text of the document, in which backticks mark code. */
export function prose(value: unknown): string {
  if (typeof value !== 'string') return '';
  return escape(value).replace(/`([^`]*)`/g, '<code>$1</code>');
}

export function json(value: unknown): string {
  return `<pre>${escape(JSON.stringify(value, null, 2) ?? '')}</pre>`;
}

/** A table of these rows, each a list of cells in HTML; nothing without rows. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const row = (cells: readonly string[], tag: string): string =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`;
  return `<table>${row(heads, 'th')}${rows.map((cells) => row(cells, 'td')).join('')}</table>`;
}

/** The type of a schema in a few words, with links to the named ones. */
export function typeHtml(schema: unknown): string {
  const { $ref, const: only, enum: values, anyOf, oneOf, type, items, additionalProperties, format } = fields(schema);
  if (typeof $ref === 'string') return linkTo($ref.slice(prefix.length));
  if (only !== undefined) return `<code>${escape(JSON.stringify(only))}</code>`;
  if (Array.isArray(values)) return values.map((value) => `<code>${escape(JSON.stringify(value))}</code>`).join(' | ');
  const alternatives = [anyOf, oneOf].find(Array.isArray);
  if (alternatives !== undefined) return alternatives.map(typeHtml).join(' | ');
  if (type === 'array') return `list of ${typeHtml(items)}`;
  if (type === 'object' && typeof additionalProperties === 'object') return `map to ${typeHtml(additionalProperties)}`;
  const name = Array.isArray(type) ? type.join(' | ') : type;
  const bounds = boundsOf(fields(schema));
  const more = [typeof format === 'string' ? format : '', bounds].filter((part) => part !== '').join(', ');
  return escape(`${typeof name === 'string' ? name : 'any'}${more === '' ? '' : ` (${more})`}`);
}

function boundsOf({ minimum, maximum, minLength, maxLength }: Fields): string {
  const numbers: readonly (readonly [unknown, unknown, string])[] = [
    [minimum, maximum, ''],
    [minLength, maxLength, ' characters'],
  ];
  const said = numbers.map(([least, most, unit]) => {
    // The bounds of the number format itself say nothing.
    const from = typeof least === 'number' && least > Number.MIN_SAFE_INTEGER ? least : undefined;
    const to = typeof most === 'number' && most < Number.MAX_SAFE_INTEGER ? most : undefined;
    if (to !== undefined) return `${from ?? ''}..${to}${unit}`;
    return from === undefined ? '' : `from ${from}${unit}`;
  });
  return said.filter((part) => part !== '').join(', ');
}

function linkTo(name: string): string {
  return `<a href="#schema-${escape(name)}">${escape(name)}</a>`;
}

/** The fields of an object schema, alternative by alternative; for any other schema its type. */
export function schemaHtml(schema: unknown): string {
  const { properties, required, anyOf, oneOf } = fields(schema);
  if (properties === undefined) {
    const alternatives = [anyOf, oneOf].find(Array.isArray) ?? [];
    const inline = alternatives.filter((one) => fields(one)['properties'] !== undefined);
    return `<p>${typeHtml(schema)}</p>${inline.map(schemaHtml).join('')}`;
  }
  const needed = Array.isArray(required) ? required : [];
  const rows = Object.entries(fields(properties)).map(([name, property]) => [
    `<code>${escape(name)}</code>${needed.includes(name) ? ' <b>required</b>' : ''}`,
    typeHtml(property),
    prose(fields(property)['description']),
  ]);
  return table(['field', 'type', ''], rows);
}
