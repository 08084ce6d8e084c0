import { AddressLink } from '../../ui/address-link.js'
import { Copyable } from '../../ui/copy.js'
import { visibleName } from '../../ui/format.js'

interface ProviderPageProps {
  readonly url: string
  readonly code?: string | undefined
  readonly label?: string
}

/** Where a person signs in at a provider, with the code that its page wants. */
export const ProviderPage = ({ url, code, label = 'Open the sign-in page' }: ProviderPageProps) => (
  <p>
    <AddressLink address={url} label={label} />
    {code && (
      <>
        {' '}
        and enter{' '}
        <Copyable text={code} what="the code">
          {visibleName(code)}
        </Copyable>
      </>
    )}
    .
  </p>
)
