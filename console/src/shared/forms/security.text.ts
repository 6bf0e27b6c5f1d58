/** The words of how a target is dialled. */
export const securityText = {
  security: 'Security',
  plain: 'none',
  tls: 'TLS',
  reality: 'REALITY',
  serverName: 'Server name',
  pins: 'Key pins (SHA-256, base64)',
  pinsHint: 'At least one. Type one and press Enter.',
  carriedBy: 'Transport',
  publicKey: 'Public key (base64url)',
  shortId: 'Short id (hex, may be empty)',
} as const;
