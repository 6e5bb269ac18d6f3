internal import Foundation
internal import ImprintLive
internal import ImprintStudio

/// The output of `imprint studio --share`: the address for a phone as a QR code, the warning, and the devices that connect.
final class SharedStudio {
    private let access: SharedAccess
    private let isJSON: Bool
    /// The address that lets the next device in.
    private(set) var address: URL
    /// Whether Return in the terminal shows another code.
    private var readsKeys = isatty(STDIN_FILENO) == 1

    var fingerprint: String { access.fingerprint }

    init(_ access: SharedAccess, isJSON: Bool) {
        (self.access, self.isJSON) = (access, isJSON)
        address = access.invite()
    }

    /// Prints the warning and the code.
    func show() throws {
        Terminal.warn(
            "Warning: the first person in this network who opens the next address can use the studio: see photos, train, delete."
        )
        Terminal.always(
            "The phone warns about the certificate of the studio. Continue only if it has this SHA-256 fingerprint:")
        Terminal.always("  \(access.fingerprint.prefix(47))")
        Terminal.always("  \(access.fingerprint.dropFirst(48))")
        try showCode()
    }

    /// Prints devices that have connected, and another code if the user asks for it.
    func update() throws {
        for device in access.takeArrivals() {
            if isJSON {
                try Terminal.emit(DeviceLine(address: device))
            } else {
                Terminal.always(
                    "\(device) has opened the studio. If you do not know this device, end the studio with Ctrl-C.")
                if readsKeys { Terminal.note("Press Return to show a code for another device.") }
            }
        }
        guard wasReturnPressed() else { return }
        address = access.invite()
        if isJSON {
            try Terminal.emit(SharedLine(sharedAddress: address.absoluteString))
        } else {
            try showCode()
        }
    }

    /// Prints the address and, on a terminal, its QR code.
    private func showCode() throws {
        try Terminal.show(address.absoluteString)
        guard isatty(STDOUT_FILENO) == 1, Terminal.isInteractive else { return }
        guard let code = QRCode(address.absoluteString) else {
            return Terminal.warn(
                "The QR code cannot be drawn: this program cannot use libqrencode 4. Install libqrencode4 (Debian, Ubuntu) or qrencode "
                    + "(Homebrew), or type the address on the phone.")
        }
        if code.columns > Terminal.columns {
            Terminal.warn(
                "The QR code needs \(code.columns) columns, and the terminal has \(Terminal.columns). Widen it, and press Return for a "
                    + "new code.")
        }
        Terminal.draw(code.lines.joined(separator: "\n") + "\n")
        Terminal.note("Scan this code with the phone, which must be in the same network. It works once.")
    }

    /// Returns whether the user has pressed Return in the terminal since the last call.
    private func wasReturnPressed() -> Bool {
        // Reading stops a process in the background of its terminal.
        guard readsKeys, tcgetpgrp(STDIN_FILENO) == getpgrp() else { return false }
        var descriptor = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        guard poll(&descriptor, 1, 0) > 0 else { return false }
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = read(STDIN_FILENO, &bytes, bytes.count)
        // The terminal has been closed, or Ctrl-D was pressed.
        if count <= 0 { readsKeys = false }
        return count > 0
    }
}

private struct DeviceLine: Encodable {
    let event = "connected"
    let address: String
}

private struct SharedLine: Encodable {
    let event = "sharing"
    let sharedAddress: String
}
