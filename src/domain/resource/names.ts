/** Names are unique per resource type, compared case-insensitively after NFC (`docs/contract/rest.md`, bounds). */
export function nameKey(name: string): string {
  return name.normalize('NFC').toLowerCase();
}

/** The entry of a name in the fleet's index of names. */
export function nameEntry(type: string, name: string): string {
  return `${type}/${nameKey(name)}`;
}
