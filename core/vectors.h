// Sixteen floats at a time, for the instruction set that this file is compiled for.
//
// Every operation is done lane by lane, and sums over lanes are taken in one fixed order, so that a result never
// depends on how work is divided.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// A loop over accumulators that must live in registers.
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

namespace heedful {
namespace ISA {

constexpr int LANES = 16;

#if defined(__AVX512F__)

struct Floats {
    __m512 all;
};
inline Floats load(const float* from) { return {_mm512_loadu_ps(from)}; }
inline Floats load_first(const float* from, int count) {
    return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from)};
}
inline void store(float* to, Floats x) { _mm512_storeu_ps(to, x.all); }
inline void store_first(float* to, Floats x, int count) {
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), x.all);
}
inline Floats broadcast(float x) { return {_mm512_set1_ps(x)}; }
inline Floats operator+(Floats a, Floats b) { return {_mm512_add_ps(a.all, b.all)}; }
inline Floats operator-(Floats a, Floats b) { return {_mm512_sub_ps(a.all, b.all)}; }
inline Floats operator*(Floats a, Floats b) { return {_mm512_mul_ps(a.all, b.all)}; }
inline Floats operator/(Floats a, Floats b) { return {_mm512_div_ps(a.all, b.all)}; }
inline Floats fma(Floats a, Floats b, Floats c) { return {_mm512_fmadd_ps(a.all, b.all, c.all)}; }
// The second operand where either is NaN.
inline Floats largest(Floats a, Floats b) { return {_mm512_max_ps(a.all, b.all)}; }
inline Floats smallest(Floats a, Floats b) { return {_mm512_min_ps(a.all, b.all)}; }
inline Floats zero_below(Floats x, Floats limit, Floats y) {
    return {_mm512_mask_mov_ps(y.all, _mm512_cmp_ps_mask(x.all, limit.all, _CMP_LT_OQ), _mm512_setzero_ps())};
}
// 2 to the power of whole numbers, given in the low bits of floats near 1.5 * 2^23.
inline Floats power_of_two(Floats shifted) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(shifted.all), 23))};
}
inline uint32_t above(Floats x, Floats limit) { return _mm512_cmp_ps_mask(x.all, limit.all, _CMP_GT_OQ); }

struct Eight {
    __m256 all;
};
inline Eight halves_added(Floats x) {
    return {_mm256_add_ps(_mm512_castps512_ps256(x.all),
                          _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x.all), 1)))};
}
inline Eight larger_halves(Floats x) {
    return {_mm256_max_ps(_mm512_castps512_ps256(x.all),
                          _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x.all), 1)))};
}

#elif defined(__AVX2__)

struct Floats {
    __m256 low, high;
};
inline __m256i first_lanes(int count) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lanes);
}
inline Floats load(const float* from) { return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}; }
inline Floats load_first(const float* from, int count) {
    return {_mm256_maskload_ps(from, first_lanes(count)), _mm256_maskload_ps(from + 8, first_lanes(count - 8))};
}
inline void store(float* to, Floats x) {
    _mm256_storeu_ps(to, x.low);
    _mm256_storeu_ps(to + 8, x.high);
}
inline void store_first(float* to, Floats x, int count) {
    _mm256_maskstore_ps(to, first_lanes(count), x.low);
    _mm256_maskstore_ps(to + 8, first_lanes(count - 8), x.high);
}
inline Floats broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Floats operator+(Floats a, Floats b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
inline Floats operator-(Floats a, Floats b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
inline Floats operator*(Floats a, Floats b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
inline Floats operator/(Floats a, Floats b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
inline Floats fma(Floats a, Floats b, Floats c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline Floats largest(Floats a, Floats b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
inline Floats smallest(Floats a, Floats b) { return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)}; }
inline Floats zero_below(Floats x, Floats limit, Floats y) {
    return {_mm256_andnot_ps(_mm256_cmp_ps(x.low, limit.low, _CMP_LT_OQ), y.low),
            _mm256_andnot_ps(_mm256_cmp_ps(x.high, limit.high, _CMP_LT_OQ), y.high)};
}
inline Floats power_of_two(Floats shifted) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(shifted.low), 23)),
            _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(shifted.high), 23))};
}
inline uint32_t above(Floats x, Floats limit) {
    uint32_t low = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(x.low, limit.low, _CMP_GT_OQ)));
    uint32_t high = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(x.high, limit.high, _CMP_GT_OQ)));
    return low | high << 8;
}

struct Eight {
    __m256 all;
};
inline Eight halves_added(Floats x) { return {_mm256_add_ps(x.low, x.high)}; }
inline Eight larger_halves(Floats x) { return {_mm256_max_ps(x.low, x.high)}; }

#else

struct Floats {
    float lane[LANES];
};
#define HEEDFUL_LANES for (int i = 0; i < LANES; i++)
inline Floats load(const float* from) {
    Floats x;
    memcpy(x.lane, from, sizeof x.lane);
    return x;
}
inline Floats load_first(const float* from, int count) {
    Floats x = {};
    for (int i = 0; i < count; i++) x.lane[i] = from[i];
    return x;
}
inline void store(float* to, Floats x) { memcpy(to, x.lane, sizeof x.lane); }
inline void store_first(float* to, Floats x, int count) {
    for (int i = 0; i < count; i++) to[i] = x.lane[i];
}
inline Floats broadcast(float x) {
    Floats y;
    HEEDFUL_LANES y.lane[i] = x;
    return y;
}
inline Floats operator+(Floats a, Floats b) {
    HEEDFUL_LANES a.lane[i] += b.lane[i];
    return a;
}
inline Floats operator-(Floats a, Floats b) {
    HEEDFUL_LANES a.lane[i] -= b.lane[i];
    return a;
}
inline Floats operator*(Floats a, Floats b) {
    HEEDFUL_LANES a.lane[i] *= b.lane[i];
    return a;
}
inline Floats operator/(Floats a, Floats b) {
    HEEDFUL_LANES a.lane[i] /= b.lane[i];
    return a;
}
// Rounded twice, where the other instruction sets round once.
inline Floats fma(Floats a, Floats b, Floats c) { return a * b + c; }
inline Floats largest(Floats a, Floats b) {
    HEEDFUL_LANES a.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
    return a;
}
inline Floats smallest(Floats a, Floats b) {
    HEEDFUL_LANES a.lane[i] = a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i];
    return a;
}
inline Floats zero_below(Floats x, Floats limit, Floats y) {
    HEEDFUL_LANES y.lane[i] = x.lane[i] < limit.lane[i] ? 0.0f : y.lane[i];
    return y;
}
inline Floats power_of_two(Floats shifted) {
    uint32_t bits[LANES];
    memcpy(bits, shifted.lane, sizeof bits);
    HEEDFUL_LANES bits[i] <<= 23;
    memcpy(shifted.lane, bits, sizeof bits);
    return shifted;
}
inline uint32_t above(Floats x, Floats limit) {
    uint32_t found = 0;
    HEEDFUL_LANES found |= static_cast<uint32_t>(x.lane[i] > limit.lane[i]) << i;
    return found;
}
#endif

#if defined(__AVX2__)

// Eight lanes: the four of one half are added to those of the other, and so on.
inline float sum(Floats x) {
    __m256 eight = halves_added(x).all;
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float largest(Floats x) {
    __m256 eight = larger_halves(x).all;
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

#else

inline float sum(Floats x) {
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) x.lane[i] += x.lane[i + half];
    return x.lane[0];
}
inline float largest(Floats x) {
    for (int i = 1; i < LANES; i++) x.lane[0] = x.lane[i] > x.lane[0] ? x.lane[i] : x.lane[0];
    return x.lane[0];
}

#endif

// The same number in the first lanes, and zeros in the others.
inline Floats broadcast_first(float x, int count) {
    float lanes[LANES];
    for (int i = 0; i < LANES; i++) lanes[i] = i < count ? x : 0.0f;
    return load(lanes);
}

// The rest of a row from some place on, at most one vector.
inline Floats load_rest(const float* row, int place, int width) {
    return width - place >= LANES ? load(row + place) : load_first(row + place, width - place);
}
inline void store_rest(float* row, Floats x, int place, int width) {
    if (width - place >= LANES)
        store(row + place, x);
    else
        store_first(row + place, x, width - place);
}

// e to the power of x, within 2 units of the last place; 0 below -87, and NaN for NaN.
inline Floats exponential(Floats x) {
    const Floats lowest = broadcast(-87.0f), shift = broadcast(12582912.0f + 127.0f);
    Floats y = smallest(broadcast(88.0f), largest(lowest, x));
    Floats shifted = fma(y, broadcast(1.44269504f), shift);
    Floats whole = shifted - shift;
    Floats rest = fma(whole, broadcast(-0.693359375f), y);
    rest = fma(whole, broadcast(2.12194440e-4f), rest);
    Floats power = broadcast(1.9875691500e-4f);
    power = fma(power, rest, broadcast(1.3981999507e-3f));
    power = fma(power, rest, broadcast(8.3334519073e-3f));
    power = fma(power, rest, broadcast(4.1665795894e-2f));
    power = fma(power, rest, broadcast(1.6666665459e-1f));
    power = fma(power, rest, broadcast(5.0000001201e-1f));
    power = fma(power * rest, rest, rest + broadcast(1.0f));
    return zero_below(x, lowest, power * power_of_two(shifted));
}

inline Floats hyperbolic_tangent(Floats x) {
    const Floats one = broadcast(1.0f), two = broadcast(2.0f);
    return one - two / (exponential(x * two) + one);
}

// The error function by a quotient of polynomials, within 3e-7.
inline Floats error_function(Floats x) {
    x = smallest(broadcast(4.0f), largest(broadcast(-4.0f), x));
    Floats square = x * x;
    static const float ABOVE[] = {2.77068142495902e-08f,  -2.10102402082508e-06f, -5.69250639462346e-05f,
                                  -7.34990630326855e-04f, -2.95459980854025e-03f, -1.60960333262415e-02f};
    static const float BELOW[] = {-2.13374055278905e-04f, -1.68282697438203e-03f, -7.37332916720468e-03f,
                                  -1.42647390514189e-02f};
    Floats above_line = broadcast(-2.72614225801306e-10f), below_line = broadcast(-1.45660718464996e-05f);
    for (float each : ABOVE) above_line = fma(above_line, square, broadcast(each));
    for (float each : BELOW) below_line = fma(below_line, square, broadcast(each));
    return x * above_line / below_line;
}

}  // namespace ISA
}  // namespace heedful
