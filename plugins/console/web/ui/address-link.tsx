/** A link to an address outside of the console, if it is one of the web. */
export const AddressLink = ({ address, label }: { address: string; label: string }) =>
  /^https?:$/.test(URL.parse(address)?.protocol ?? '') ? (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {label}
    </a>
  ) : null
