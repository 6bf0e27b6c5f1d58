/** The version of the service, as package.json has it; a test compares them. */
export const version = '0.1.0';
