/**
 * What the headers say of a body: its type, and whether there is one. Pure. Implements `docs/contract/rest.md#errors`.
 */
import type { IncomingHttpHeaders } from 'node:http';

/** True for `application/json`, with no charset or UTF-8. */
export function isJson(contentType: string): boolean {
  const [type = '', ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase());
  return (
    type === 'application/json' &&
    parameters.every((parameter) => {
      const [key, value] = parameter.split('=');
      return key !== 'charset' || value === 'utf-8' || value === 'utf8' || value === '"utf-8"';
    })
  );
}

export function hasContent(headers: IncomingHttpHeaders): 'some' | 'none' | 'unknown' {
  if (headers['transfer-encoding'] !== undefined) return 'unknown';
  return Number(headers['content-length'] ?? '0') > 0 ? 'some' : 'none';
}
