/**
 * Renders the OpenAPI document as the HTML page of `/docs`, without scripts. Pure. Implements
 * `docs/contract/rest.md#beside-api`.
 */
import { createHash } from 'node:crypto';

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
details { border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .6rem; background: color-mix(in srgb, currentColor 7%, transparent); border-radius: 6px; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; }
th, td { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top; }
`;

/** The style's hash for the content security policy, which allows no other style and no script. */
export const docsStyleSource = `'sha256-${createHash('sha256').update(style).digest('base64')}'`;

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly facts: Fields;
}
type Fields = Readonly<Record<string, unknown>>;

export function docsPage(document: object): string {
  const info = fields(Reflect.get(document, 'info'));
  const operations = operationsOf(document);
  const tags = [...new Set(operations.map((one) => tagOf(one)))];
  const sections = tags.map((tag) => {
    const ofTag = operations.filter((one) => tagOf(one) === tag).map(operationHtml);
    return `<h2 id="${escape(tag)}">${escape(tag)}</h2>\n${ofTag.join('\n')}`;
  });
  const schemas = Object.entries(fields(fields(Reflect.get(document, 'components'))['schemas'])).map(
    ([name, schema]) =>
      `<details id="schema-${escape(name)}"><summary><code>${escape(name)}</code></summary>${json(schema)}</details>`,
  );
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${text(info['title'])}</title><style>${style}</style></head>
<body>
<h1>${text(info['title'])} ${text(info['version'])}</h1>
<p>${text(info['description'])}</p>
<p><a href="/openapi.json">openapi.json</a></p>
${sections.join('\n')}
<h2 id="schemas">schemas</h2>
${schemas.join('\n')}
</body>
</html>
`;
}

function operationsOf(document: object): readonly Operation[] {
  return Object.entries(fields(Reflect.get(document, 'paths'))).flatMap(([path, methods]) =>
    Object.entries(fields(methods)).map(([method, facts]) => ({
      method: method.toUpperCase(),
      path,
      facts: fields(facts),
    })),
  );
}

function tagOf({ facts }: Operation): string {
  const { tags } = facts;
  return Array.isArray(tags) && typeof tags[0] === 'string' ? tags[0] : 'other';
}

function operationHtml({ method, path, facts }: Operation): string {
  const parameters = (Array.isArray(facts['parameters']) ? facts['parameters'] : []).map((one) => {
    const { name, in: where, description } = fields(one);
    return `<tr><td><code>${text(name)}</code></td><td>${text(where)}</td><td>${text(description ?? fields(fields(one)['schema'])['description'])}</td></tr>`;
  });
  const answers = Object.entries(fields(facts['responses'])).map(
    ([status, answer]) => `<h4>${escape(status)}</h4>${json(schemaOf(answer))}`,
  );
  const body = facts['requestBody'] === undefined ? '' : `<h4>body</h4>${json(schemaOf(facts['requestBody']))}`;
  return `<details><summary><span class="method">${escape(method)}</span> <code>${escape(path)}</code> ${text(facts['summary'])}</summary>
${parameters.length === 0 ? '' : `<table>${parameters.join('')}</table>`}${body}${answers.join('')}</details>`;
}

function schemaOf(container: unknown): unknown {
  const [media] = Object.values(fields(fields(container)['content']));
  return fields(media)['schema'] ?? {};
}

function json(value: unknown): string {
  return `<pre>${escape(JSON.stringify(value, null, 2) ?? '')}</pre>`;
}

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function text(value: unknown): string {
  return typeof value === 'string' ? escape(value) : '';
}

function escape(value: string): string {
  return value.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
