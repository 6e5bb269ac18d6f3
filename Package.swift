// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [.enableUpcomingFeature("InternalImportsByDefault")]

let package = Package(
    name: "imprint",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "ImprintImages", targets: ["ImprintImages"])
    ],
    targets: [
        // System libraries: a module map each, nothing else.
        .systemLibrary(
            name: "COpenBLAS", pkgConfig: "openblas",
            providers: [.apt(["libopenblas-dev"]), .brew(["openblas"])]),
        .systemLibrary(
            name: "CTurboJPEG", pkgConfig: "libturbojpeg",
            providers: [.apt(["libturbojpeg0-dev"]), .brew(["jpeg-turbo"])]),
        .systemLibrary(
            name: "CPNG", pkgConfig: "libpng",
            providers: [.apt(["libpng-dev"]), .brew(["libpng"])]),

        // The library, in the order in which data walks through it.
        .target(name: "ImprintCore", swiftSettings: settings),
        .target(name: "ImprintImages", dependencies: ["ImprintCore", "CTurboJPEG", "CPNG"], swiftSettings: settings),
        .target(name: "TestSupport", dependencies: ["ImprintCore"], path: "Tests/TestSupport", swiftSettings: settings),
        .testTarget(name: "ImprintCoreTests", dependencies: ["ImprintCore", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "ImprintImagesTests", dependencies: ["ImprintImages", "TestSupport"], exclude: ["Fixtures"],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
