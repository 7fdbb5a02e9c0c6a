import { body, client, type Schemas } from './client';

export type SearchHit = Schemas['SearchList']['data'][number];

export async function search(q: string, signal?: AbortSignal): Promise<SearchHit[]> {
  return (await body(client.GET('/v1/search', { params: { query: { q } }, signal }))).data;
}
