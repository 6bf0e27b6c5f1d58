/**
 * Names are unique per resource type, compared case-insensitively after NFC.
 * Implements `docs/contract/rest.md#envelope`, the bounds.
 */
export function nameKey(name: string): string {
  return name.normalize('NFC').toLowerCase();
}

/** The key of a name in the fleet's index of names. */
export function nameIndexKey(type: string, name: string): string {
  return `${type}/${nameKey(name)}`;
}
