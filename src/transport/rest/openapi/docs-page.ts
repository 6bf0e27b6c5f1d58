/**
 * Renders the OpenAPI document as the HTML page of `/docs`: all that it says, schemas in a few words with links between them,
 * with a search, and without anything from elsewhere. The page can be read without its script too. Pure. Implements `docs/contract/rest.md#beside-api`.
 */
import { createHash } from 'node:crypto';
import type { Document, Operation } from './openapi-document.js';

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
details { border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem; }
details:target { outline: 2px solid; }
summary { cursor: pointer; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .6rem; background: color-mix(in srgb, currentColor 7%, transparent); border-radius: 6px; }
nav a { margin-right: .8rem; }
#search { width: 100%; box-sizing: border-box; font: inherit; padding: .4rem .8rem; margin: .5rem 0; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; }
th, td { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top; }
h4 { margin: .8rem 0 .2rem; }
`;

/**
 * The search shows the boxes that have every word of it somewhere in them; in a section without one the heading is hidden too.
 * A link opens the box that it leads to.
 */
const script = `
const boxes = [...document.querySelectorAll('details')].map((box) => [box, box.textContent.toLowerCase()]);
const headings = [...document.querySelectorAll('h2')];
const search = document.getElementById('search');
search.hidden = false;
search.addEventListener('input', () => {
  const words = search.value.toLowerCase().split(/\\s+/).filter((word) => word !== '');
  for (const [box, text] of boxes) box.hidden = !words.every((word) => text.includes(word));
  for (const heading of headings) {
    let found = words.length === 0;
    for (let next = heading.nextElementSibling; next !== null && next.tagName !== 'H2'; next = next.nextElementSibling)
      found ||= next.tagName === 'DETAILS' && !next.hidden;
    heading.hidden = !found;
  }
});
const openTarget = () => {
  const box = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (box === null) return;
  box.hidden = false;
  if (box.tagName === 'DETAILS') box.open = true;
  box.scrollIntoView();
};
addEventListener('hashchange', openTarget);
openTarget();
`;

const hashSource = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** The hashes of its style and its script for the content security policy, which allows no others. */
export const docsSources = { style: hashSource(style), script: hashSource(script) } as const;

interface Listed {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export function docsPage(document: Document): string {
  const { info, tags, components } = document;
  const { schemas = {}, responses = {}, headers = {}, securitySchemes = {} } = components;
  const operations: readonly Listed[] = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  const sections = tags.map(({ name, description }) => {
    const ofTag = operations.filter(({ operation }) => operation.tags.includes(name));
    const listed = ofTag.map((one) => operationHtml(document, one));
    return `<h2 id="${escape(name)}">${escape(name)}</h2>\n<p>${prose(description)}</p>\n${listed.join('\n')}`;
  });
  const links = [...tags.map(({ name }) => name), 'failures', 'headers', 'tokens', 'schemas'];
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escape(info.title)}</title><style>${style}</style></head>
<body>
<h1>${escape(info.title)} ${escape(info.version)}</h1>
${info.description
  .split('\n\n')
  .map((paragraph) => `<p>${prose(paragraph)}</p>`)
  .join('\n')}
<p><a href="/openapi.json">openapi.json</a> (OpenAPI ${escape(document.openapi)}), to generate clients from</p>
<input id="search" type="search" placeholder="Search operations, fields, schemas" aria-label="Search" hidden>
<nav>${links.map((name) => `<a href="#${escape(name)}">${escape(name)}</a>`).join('')}</nav>
${sections.join('\n')}
<h2 id="failures">failures</h2>
${Object.entries(responses)
  .map(([name, answer]) => failureHtml(name, fields(answer)))
  .join('\n')}
<h2 id="headers">headers</h2>
${table(['header of an answer', 'type', ''], Object.entries(headers).map(headerRow))}
<h2 id="tokens">tokens</h2>
${table(
  ['', ''],
  Object.entries(securitySchemes).map(([name, scheme]) => [
    `<code>${escape(name)}</code>`,
    prose(fields(scheme)['description']),
  ]),
)}
<h2 id="schemas">schemas</h2>
${Object.entries(schemas)
  .map(([name, schema]) => componentHtml(name, fields(schema)))
  .join('\n')}
<script>${script}</script>
</body>
</html>
`;
}

function operationHtml(document: Document, { method, path, operation }: Listed): string {
  const { operationId, summary, description, security = document.security, parameters, requestBody } = operation;
  const tokens = security.flatMap((scheme) => Object.keys(scheme));
  const rows = parameters.map((parameter) => {
    const { name, in: where, required, description: said, schema } = fields(parameter);
    const { default: presumed, examples } = fields(schema);
    const example: unknown = Array.isArray(examples) ? examples[0] : undefined;
    const notes = [
      prose(said),
      presumed === undefined ? '' : `default <code>${escape(JSON.stringify(presumed))}</code>`,
      example === undefined ? '' : `for example <code>${escape(String(example))}</code>`,
    ];
    return [
      `<code>${escape(String(name))}</code>${required === true ? ' <b>required</b>' : ''}`,
      escape(String(where)),
      typeHtml(schema),
      notes.filter((note) => note !== '').join('; '),
    ];
  });
  const body = requestBody === undefined ? '' : `<h4>body</h4>${contentHtml(fields(requestBody))}`;
  const answers = Object.entries(operation.responses).map(([status, answer]) => answerHtml(status, fields(answer)));
  return `<details id="${escape(operationId)}"><summary><span class="method">${escape(method)}</span> <code>${escape(path)}</code> ${prose(summary)}</summary>
<p>${prose(description)}</p>
<p><code>${escape(operationId)}</code>, ${tokens.length === 0 ? 'without a token' : `with the token <code>${escape(tokens.join(', '))}</code>`}</p>
${table(['parameter', 'in', 'type', ''], rows)}${body}${answers.filter((answer) => !answer.startsWith('<li>')).join('')}
<ul>${answers.filter((answer) => answer.startsWith('<li>')).join('')}</ul></details>`;
}

/** A success as a whole, a failure as an item of a list that leads to what all routes say of it. */
function answerHtml(status: string, answer: Fields): string {
  const { $ref, description, headers } = answer;
  if (typeof $ref === 'string') {
    const name = $ref.slice($ref.lastIndexOf('/') + 1);
    return `<li>${escape(status)} <a href="#failure-${escape(name)}">${escape(name)}</a></li>`;
  }
  const sent = Object.keys(fields(headers)).map((name) => `<code>${escape(name)}</code>`);
  return `<h4>${escape(status)}</h4><p>${prose(description)}; headers ${sent.join(', ')}</p>${contentHtml(answer)}`;
}

/** The data of an envelope without the envelope around it; any other content as it is. */
function contentHtml(container: Fields): string {
  return Object.entries(fields(container['content']))
    .map(([media, content]) => {
      const { schema, example } = fields(content);
      const { success, data = schema } = fields(fields(schema)['properties']);
      const what = success === undefined ? `${escape(media)}: ` : '<code>data</code>: ';
      const inline = fields(data)['properties'] === undefined ? '' : schemaHtml(data);
      return `<p>${what}${typeHtml(data)}</p>${inline}${json(example)}`;
    })
    .join('');
}

function failureHtml(name: string, answer: Fields): string {
  const sent = Object.keys(fields(answer['headers'])).map((header) => `<code>${escape(header)}</code>`);
  return `<details id="failure-${escape(name)}"><summary><code>${escape(name)}</code> ${prose(answer['description'])}</summary><p>headers ${sent.join(', ')}</p>${contentHtml(answer)}</details>`;
}

function headerRow([name, header]: readonly [string, unknown]): readonly string[] {
  const { description, schema, required } = fields(header);
  const { examples } = fields(schema);
  const example = Array.isArray(examples) ? `; for example <code>${escape(String(examples[0]))}</code>` : '';
  return [
    `<code>${escape(name)}</code>${required === true ? ' <b>always</b>' : ''}`,
    typeHtml(schema),
    `${prose(description)}${example}`,
  ];
}

function componentHtml(name: string, schema: Fields): string {
  const { examples, description, ...shape } = schema;
  const example: unknown = Array.isArray(examples) ? examples[0] : undefined;
  return `<details id="schema-${escape(name)}"><summary><code>${escape(name)}</code> ${prose(description)}</summary>${schemaHtml(shape)}<h4>example</h4>${json(example)}<h4>JSON schema</h4>${json(shape)}</details>`;
}

export type Fields = Readonly<Record<string, unknown>>;

const prefix = '#/components/schemas/';

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function escape(value: string): string {
  return value.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Text of the document, in which backticks mark code. */
function prose(value: unknown): string {
  if (typeof value !== 'string') return '';
  return escape(value).replace(/`([^`]*)`/g, '<code>$1</code>');
}

function json(value: unknown): string {
  return `<pre>${escape(JSON.stringify(value, null, 2) ?? '')}</pre>`;
}

/** A table of these rows, each a list of cells in HTML; nothing without rows. */
function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const row = (cells: readonly string[], tag: string): string =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`;
  return `<table>${row(heads, 'th')}${rows.map((cells) => row(cells, 'td')).join('')}</table>`;
}

/** The type of a schema in a few words, with links to the named ones. */
function typeHtml(schema: unknown): string {
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
function schemaHtml(schema: unknown): string {
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
