/**
 * Overlap of canonical IP literals. REST brings addresses into canonical form. Implements
 * `docs/contract/domain.md#listeners-and-collisions`.
 */

function isIpv6(address: string): boolean {
  return address.includes(':');
}

/** `0.0.0.0` overlaps every IPv4 address and `::` every address; equal addresses overlap. */
export function overlaps(a: string, b: string): boolean {
  if (a === b || a === '::' || b === '::') return true;
  if (a === '0.0.0.0') return !isIpv6(b);
  if (b === '0.0.0.0') return !isIpv6(a);
  return false;
}
