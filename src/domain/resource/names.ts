/** Names are unique per resource type, compared case-insensitively after NFC (`docs/contract/rest.md`, bounds). */
export function nameKey(name: string): string {
  return name.normalize('NFC').toLowerCase();
}
