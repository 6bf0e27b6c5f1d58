/** What a client takes, by its `Accept-Encoding` (RFC 9110, section 12.5.3), as far as this service compresses. */

/** @param accepted the header */
export function acceptsCoding(accepted: string | string[] | undefined, wanted: string): boolean {
  return String(accepted ?? '')
    .split(',')
    .map((part) => part.trim().split(/\s*;\s*q=/i))
    .some(([coding, weight = '1']) => coding?.toLowerCase() === wanted && Number(weight) > 0);
}
