import type { Host } from '../../sdk/index.js'
import { Masker } from '../../sdk/node/access/masker.js'

/** Masks the values of the secrets that are stored now. */
export const approvalMasker = async (host: Pick<Host, 'call' | 'serves'>): Promise<Masker> =>
  new Masker((await host.serves('secrets.values')) ? (await host.call('secrets.values')).values : [])
