/**
 * Names are unique per resource type, compared case-insensitively after NFC.
 * Implements `docs/contract/rest.md#envelope`, the bounds.
 */
export function nameKey(name: string): string {
  // Nearly every name is in ASCII, where normalizing changes nothing and costs most.
  return (ascii.test(name) ? name : name.normalize('NFC')).toLowerCase();
}

// oxlint-disable-next-line no-control-regex -- ASCII has control characters
const ascii = /^[\u0000-\u007f]*$/;

/** The key of a name in the fleet's index of names. */
export function nameIndexKey(type: string, name: string): string {
  return `${type}/${nameKey(name)}`;
}
