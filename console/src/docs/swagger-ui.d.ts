/** The package has no types. */
declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  export default function SwaggerUI(options: {
    readonly url: string;
    readonly dom_id: string;
    /** Links lead to operations. */
    readonly deepLinking: boolean;
    /** A field that filters by tag. */
    readonly filter: boolean;
    readonly docExpansion: 'none';
  }): void;
}
