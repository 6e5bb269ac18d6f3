// swift-tools-version: 6.2

import PackageDescription

// A separate package, so that users of Imprint do not build it. CONTRIBUTING.md has the command.
let package = Package(
    name: "imprint-fuzzing",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "imprint", path: "..")],
    targets: [
        .target(name: "CFuzzer"),
        .executableTarget(
            name: "fuzz-import", dependencies: ["CFuzzer", .product(name: "Imprint", package: "imprint")]),
    ],
    swiftLanguageModes: [.v6]
)
