// The package has no types; these are the parts that the page uses.
declare module "openapi-explorer" {
  export default class OpenApiExplorer extends HTMLElement {
    loadSpec(document: object): Promise<void>;
    setAuthenticationConfiguration(scheme: string, values: { token: string }): Promise<void>;
  }
}
