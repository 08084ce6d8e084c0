import type { Host } from '../../host.js'
import { Masker } from './masker.js'

/** Masks the values of the secrets that are stored now. */
export const valueMasker = async (host: Pick<Host, 'call' | 'serves'>): Promise<Masker> =>
  new Masker((await host.serves('secrets.values')) ? (await host.call('secrets.values')).values : [])
