/** Names are unique per resource type, compared case-insensitively after NFC (`rest.md`, bounds). */
export function nameKey(name: string): string {
  return name.normalize('NFC').toLowerCase();
}
