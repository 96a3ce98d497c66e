// Runs the libFuzzer target on files, without libFuzzer.
#include <stdint.h>
#include <stdio.h>

#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int count, char** names) {
    for (int i = 1; i < count; i++) {
        FILE* file = fopen(names[i], "rb");
        if (!file) {
            perror(names[i]);
            return 1;
        }
        std::vector<uint8_t> bytes(1 << 16);
        bytes.resize(fread(bytes.data(), 1, bytes.size(), file));
        bytes.shrink_to_fit();
        fclose(file);
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    printf("%d inputs\n", count - 1);
}
