/** Keys that no test dials with, as WireGuard writes them. */
export const KEYS = {
  own: 'yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=',
  shared: 'FpCyhws9cxwWoV4xELtfJvjJN+zQVRPISllRWgeopVE=',
}

/** A tunnel of WireGuard, of eight lines. */
export const wireguardText = (): string =>
  [
    '[Interface]',
    `PrivateKey = ${KEYS.own}`,
    'Address = 10.99.0.2/24',
    '[Peer] # the office',
    'PublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=',
    `PresharedKey = ${KEYS.shared}`,
    'Endpoint = 192.0.2.2:51820',
    'AllowedIPs = 10.99.0.0/24',
    '',
  ].join('\n')

/** A tunnel of OpenVPN without its keys, of seven lines. */
export const OPENVPN = [
  'client',
  'dev tun',
  'proto udp',
  'remote 192.0.2.2 1194',
  'nobind',
  '# why not',
  'verb 9',
  '',
].join('\n')

/** A file as FortiClient exports it. */
export const FORTICLIENT = `<?xml version="1.0" encoding="UTF-8" ?>
<forticlient_configuration>
  <!-- an export -->
  <vpn>
    <sslvpn><connections><connection>
      <name>Office &amp; VPN</name>
      <description><![CDATA[the office]]></description>
      <server>vpn.example.org:10443</server>
      <username>ada</username>
      <password>Enc 8a7b6c5d4e3f2a1b</password>
    </connection></connections></sslvpn>
    <ipsecvpn><connections>
      <connection>
        <name>Lab</name>
        <ike_settings>
          <server>198.51.100.7</server>
          <authentication_method>Preshared Key</authentication_method>
          <auth_data><preshared_key>EncX 8a7b6c5d4e3f2a1b</preshared_key></auth_data>
          <mode>aggressive</mode><dhgroup>14;5</dhgroup><localid>lab</localid>
          <xauth><enabled>1</enabled><username>Enc 8a7b6c5d</username></xauth>
        </ike_settings>
        <ipsec_settings><pfs>1</pfs><dhgroup>5</dhgroup></ipsec_settings>
      </connection>
      <connection><name>No server</name></connection>
    </connections></ipsecvpn>
  </vpn>
</forticlient_configuration>
`
