/** Where an app shows the objects that features link to. `tenant` is missing in the portal, which knows only one. */
export interface ObjectLinks {
  delivery: (tenant: string, id: string) => string;
  event: (tenant: string, id: string) => string;
  endpoint: (tenant: string, id: string, tab?: string) => string;
  replay: (tenant: string, id: string) => string;
  newReplay: (tenant: string, query: Record<string, string | null | undefined>) => string;
  tenant?: (id: string) => string;
}
